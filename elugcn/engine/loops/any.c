/* For whatever processor the compiler is told of. */
#define LANES 4
#define LOOPS loops_of_any
#include "template.h"
