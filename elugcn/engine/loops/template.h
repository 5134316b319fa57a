/* The loops for one kind of processor: LANES floats fill its registers. */
#define INLINE static inline __attribute__((always_inline))

#include "random.h"
#include "sparse.h"
#include "hidden.h"
#include "two_views.h"

#define LOOPS                                                                          \
    {mask, product, product_t, hidden, hidden_back, similarity, two_views, contrast, LANES}
