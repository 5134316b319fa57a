/* The loops for one kind of processor: LANES floats fill its registers. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loops.h"

#if defined(HAS_WIDER) || !defined(TARGET)
#define INLINE static inline __attribute__((always_inline))
#define PRAGMA_(text) _Pragma(#text)
#define PRAGMA(text) PRAGMA_(text)
#if defined(TARGET) && defined(__clang__)
PRAGMA(clang attribute push(__attribute__((target(TARGET))), apply_to = function))
#elif defined(TARGET)
PRAGMA(GCC target(TARGET))
#endif

#include "random.h"
#include "sparse.h"
#include "hidden.h"
#include "two_views.h"

#if defined(TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
const Loops LOOPS = {mask,       product,   product_t, hidden, hidden_back,
                     similarity, two_views, contrast,  LANES};
#endif
