/* For processors with AVX2. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loops.h"

#ifdef HAS_WIDER
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define LANES 8
#include "template.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

const Loops loops_of_256 = LOOPS;
#else
typedef int nothing_here;
#endif
