/* Products of a sparse matrix, or of its transpose, with a dense Z.
 *
 * Rows of Z (of the output, for the transpose) are read in no order. Those that are
 * needed later are prefetched: where no cache holds them this is up to three times as
 * fast. Dropped entries are left out before anything is multiplied.
 */

#define LINES_AHEAD 192 /* of 64 bytes */

/* Some rows of a matrix; the entries of a row begin at crow[i]. */
typedef struct {
    const int32_t *crow, *col;
    const float *value;
    int64_t rows, last; /* the last entry that may be prefetched */
} Part;

/* Put the kept entries of rows beside each other. */
static Part kept_entries(const Sparse *a, int64_t first, int64_t rows, int thread) {
    int32_t *crow = (int32_t *)((char *)a->scratch + thread * a->scratch_size);
    int32_t *col = crow + BLOCK_ROWS + 1;
    float *value = (float *)(col + a->most);
    int32_t n = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t start = a->crow[first + i], size = a->crow[first + i + 1] - start;
        const uint64_t of_row = random_of_row(a->drop.key, first + i);
        crow[i] = n;
        for (int64_t at = 0; at < size; at += 64) {
            uint32_t words[16];
            for (int g = 0; g < 16; g += LANES) {
                Words w = random_words(of_row, at / 4 + g);
                memcpy(words + g, &w, sizeof w);
            }
            const int some = size - at < 64 ? (int)(size - at) : 64;
            for (int j = 0; j < some; j++) {
                const int32_t byte = words[j & 15] >> (j >> 4) * 8 & 255;
                col[n] = a->col[start + at + j];
                value[n] = a->value[start + at + j] * a->drop.scale;
                n += byte < a->drop.level;
            }
        }
    }
    crow[rows] = n;
    return (Part){crow, col, value, rows, n - 1};
}

static Part part_of(const Sparse *a, int64_t first, int thread) {
    int64_t rows = a->rows - first < BLOCK_ROWS ? a->rows - first : BLOCK_ROWS;
    if (a->drop.level < 256) return kept_entries(a, first, rows, thread);
    return (Part){a->crow + first, a->col, a->value, rows, a->crow[a->rows] - 1};
}

/* `many` vectors of every row, the last of which ends with it, from `at` on. */
#define PRODUCT(NAME, COUNT)                                                           \
    INLINE void NAME##_some(const Sparse a, const Part p, float *out, int64_t at,      \
                            const int many) {                                          \
        typedef float Vector __attribute__((vector_size(4 * COUNT)));                  \
        int64_t place[4], end = a.width - COUNT;                                       \
        int64_t bytes = 4 * (a.width - at < 4 * COUNT ? a.width - at : 4 * COUNT);     \
        int64_t ahead = LINES_AHEAD / ((bytes + 63) / 64);                             \
        const int ragged = a.width % 16 != 0; /* rows begin within lines */            \
        Vector bias[4] = {0};                                                          \
        for (int q = 0; q < many; q++) {                                               \
            place[q] = at + q * COUNT < end ? at + q * COUNT : end;                    \
            if (a.bias) memcpy(&bias[q], a.bias + place[q], sizeof bias[q]);           \
        }                                                                              \
        for (int64_t i = 0; i < p.rows; i++) {                                         \
            Vector sum[4], x;                                                          \
            for (int q = 0; q < many; q++) sum[q] = bias[q];                           \
            for (int64_t k = p.crow[i]; k < p.crow[i + 1]; k++) {                      \
                int64_t later = k + ahead < p.last ? k + ahead : p.last;               \
                const float *soon = a.z + (int64_t)p.col[later] * a.width;             \
                const float *from = a.z + (int64_t)p.col[k] * a.width;                 \
                if (ragged) __builtin_prefetch(soon + place[many - 1] + COUNT - 1);    \
                for (int q = 0; q < many; q++) {                                       \
                    __builtin_prefetch(soon + place[q]);                               \
                    memcpy(&x, from + place[q], sizeof x);                             \
                    sum[q] += p.value[k] * x;                                          \
                }                                                                      \
            }                                                                          \
            for (int q = 0; q < many; q++)                                             \
                memcpy(out + i * a.width + place[q], &sum[q], sizeof x);               \
        }                                                                              \
    }                                                                                  \
    static void NAME(const Sparse a, const Part p, float *out) {                       \
        for (int64_t at = 0; at < a.width; at += 4 * COUNT) {                          \
            const int64_t left = a.width - at;                                         \
            if (left <= COUNT)                                                         \
                NAME##_some(a, p, out, at, 1);                                         \
            else if (left <= 2 * COUNT)                                                \
                NAME##_some(a, p, out, at, 2);                                         \
            else if (left <= 3 * COUNT)                                                \
                NAME##_some(a, p, out, at, 3);                                         \
            else                                                                       \
                NAME##_some(a, p, out, at, 4);                                         \
        }                                                                              \
    }

/* out[col] += value Z[i] for every entry, `many` vectors of columns from `at` on. */
#define PRODUCT_T(NAME, COUNT)                                                         \
    INLINE void NAME(const Sparse a, const Part p, const float *z, int64_t at,         \
                     const int many) {                                                 \
        typedef float Vector __attribute__((vector_size(4 * COUNT)));                  \
        int64_t ahead = LINES_AHEAD / 4;                                               \
        for (int64_t i = 0; i < p.rows; i++) {                                         \
            Vector from[4], x;                                                         \
            for (int q = 0; q < many; q++)                                             \
                memcpy(&from[q], z + i * a.width + at + q * COUNT, sizeof x);          \
            for (int64_t k = p.crow[i]; k < p.crow[i + 1]; k++) {                      \
                int64_t later = k + ahead < p.last ? k + ahead : p.last;               \
                float *soon = a.out + (int64_t)p.col[later] * a.width + at;            \
                float *to = a.out + (int64_t)p.col[k] * a.width + at;                  \
                for (int q = 0; q < many; q++) {                                       \
                    __builtin_prefetch(soon + q * COUNT, 1);                           \
                    memcpy(&x, to + q * COUNT, sizeof x);                              \
                    x += p.value[k] * from[q];                                         \
                    memcpy(to + q * COUNT, &x, sizeof x);                              \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }

PRODUCT(product_by_1, 1)
PRODUCT_T(product_t_by_1, 1)
PRODUCT(product_by_4, 4)
PRODUCT_T(product_t_by_4, 4)
#if LANES >= 8
PRODUCT(product_by_8, 8)
PRODUCT_T(product_t_by_8, 8)
#endif
#if LANES >= 16
PRODUCT(product_by_16, 16)
PRODUCT_T(product_t_by_16, 16)
#endif
#define BY_(name, lanes) name##_by_##lanes
#define BY(name, lanes) BY_(name, lanes)

/* A block of rows of drop(A) Z + b. */
static void product(const void *task, int64_t block, int thread) {
    const Sparse *a = task;
    const int64_t first = block * BLOCK_ROWS;
    const Part p = part_of(a, first, thread);
    float *out = a->out + first * a->width;
    if (a->width >= LANES)
        BY(product, LANES)(*a, p, out);
#if LANES > 8
    else if (a->width >= 8)
        product_by_8(*a, p, out);
#endif
#if LANES > 4
    else if (a->width >= 4)
        product_by_4(*a, p, out);
#endif
    else
        product_by_1(*a, p, out);
}

/* A block of columns of drop(A)ᵀ Z, added to what is there. */
static void product_t(const void *task, int64_t block, int thread) {
    const Sparse *a = task;
    const int64_t start = block * a->chunk;
    const int64_t end = start + a->chunk < a->width ? start + a->chunk : a->width;
    for (int64_t first = 0; first < a->rows; first += BLOCK_ROWS) {
        const Part p = part_of(a, first, thread);
        const float *z = a->z + first * a->width;
        int64_t at = start;
        for (; at + 4 * LANES <= end; at += 4 * LANES) BY(product_t, LANES)(*a, p, z, at, 4);
        for (; at + LANES <= end; at += LANES) BY(product_t, LANES)(*a, p, z, at, 1);
        for (; at + 4 <= end; at += 4) product_t_by_4(*a, p, z, at, 1);
        for (; at < end; at++) product_t_by_1(*a, p, z, at, 1);
    }
}
