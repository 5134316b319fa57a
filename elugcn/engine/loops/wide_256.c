/* For processors with AVX2. */
#define LANES 8
#define LOOPS loops_of_256
#define TARGET "avx2,fma"
#include "template.h"
