/* For whatever processor the compiler is told of. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loops.h"

#define LANES 4
#include "template.h"

const Loops loops_of_any = LOOPS;
