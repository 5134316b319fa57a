/* For processors with AVX2. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loops.h"

#ifdef HAS_WIDER
#pragma GCC target("avx2,fma")
#define LANES 8
#include "template.h"

const Loops loops_of_256 = LOOPS;
#else
typedef int nothing_here;
#endif
