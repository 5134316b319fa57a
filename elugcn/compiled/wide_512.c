/* For processors with AVX-512. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loops.h"

#ifdef HAS_WIDER
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#define LANES 16
#include "template.h"

const Loops loops_of_512 = LOOPS;
#else
typedef int nothing_here;
#endif
