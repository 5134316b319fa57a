/* For processors with AVX-512. */
#define LANES 16
#define LOOPS loops_of_512
#define TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#include "template.h"
