/* A Z for a matrix A in compressed rows and a dense Z that no cache holds.
 *
 * Its rows are read in no order, and memory takes its time for each. Those that are
 * needed later are asked for long before: up to three times as fast as without.
 */

#define LINES_AHEAD 192 /* of 64 bytes */

/* `many` vectors of every row, the last of which ends with it, from `at` on. */
#define SPARSE_PRODUCT(NAME, COUNT)                                                    \
    INLINE void NAME##_part(const Sparse a, int64_t at, const int many) {              \
        typedef float Vector __attribute__((vector_size(4 * COUNT)));                  \
        int64_t place[4], end = a.width - COUNT, last = a.crow[a.rows] - 1;            \
        int64_t bytes = 4 * (a.width - at < 4 * COUNT ? a.width - at : 4 * COUNT);     \
        int64_t ahead = LINES_AHEAD / ((bytes + 63) / 64);                             \
        const int ragged = a.width % 16 != 0; /* rows begin within lines */            \
        for (int q = 0; q < many; q++)                                                 \
            place[q] = at + q * COUNT < end ? at + q * COUNT : end;                    \
        for (int64_t i = 0; i < a.rows; i++) {                                         \
            Vector sum[4], x;                                                          \
            for (int q = 0; q < many; q++) sum[q] = (Vector){0};                       \
            for (int64_t k = a.crow[i]; k < a.crow[i + 1]; k++) {                      \
                int64_t later = k + ahead < last ? k + ahead : last;                   \
                const float *soon = a.z + (int64_t)a.col[later] * a.width;             \
                const float *from = a.z + (int64_t)a.col[k] * a.width;                 \
                if (ragged) __builtin_prefetch(soon + place[many - 1] + COUNT - 1);    \
                for (int q = 0; q < many; q++) {                                       \
                    __builtin_prefetch(soon + place[q]);                               \
                    memcpy(&x, from + place[q], sizeof x);                             \
                    sum[q] += a.value[k] * x;                                          \
                }                                                                      \
            }                                                                          \
            for (int q = 0; q < many; q++)                                             \
                memcpy(a.out + i * a.width + place[q], &sum[q], sizeof x);             \
        }                                                                              \
    }                                                                                  \
    static void NAME(const Sparse a) {                                                 \
        for (int64_t at = 0; at < a.width; at += 4 * COUNT) switch (a.width - at) {    \
                case 1 ... COUNT: NAME##_part(a, at, 1); break;                        \
                case COUNT + 1 ... 2 * COUNT: NAME##_part(a, at, 2); break;            \
                case 2 * COUNT + 1 ... 3 * COUNT: NAME##_part(a, at, 3); break;        \
                default: NAME##_part(a, at, 4);                                        \
            }                                                                          \
    }
SPARSE_PRODUCT(product_by_4, 4)
#if LANES >= 8
SPARSE_PRODUCT(product_by_8, 8)
#else
#define product_by_8 product_by_4
#endif
#if LANES >= 16
SPARSE_PRODUCT(product_by_16, 16)
#else
#define product_by_16 product_by_8
#endif

/* At least four columns. */
static void sparse_product(const Sparse *a) {
    if (a->width >= 16)
        product_by_16(*a);
    else if (a->width >= 8)
        product_by_8(*a);
    else
        product_by_4(*a);
}
