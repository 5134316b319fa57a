/* For processors with AVX-512. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loops.h"

#ifdef HAS_WIDER
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#endif
#define LANES 16
#include "template.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

const Loops loops_of_512 = LOOPS;
#else
typedef int nothing_here;
#endif
