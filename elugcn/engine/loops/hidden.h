/* What follows a propagation, bias, ReLU, dropout and the next weight, in one pass over
 * the hidden layer, and the gradients of all of it in another.
 *
 * H itself is never stored: the second pass computes it again, random bits included.
 */

#define TOGETHER 32 /* columns of H W that are computed at once */
#define PART (LANES < 8 ? LANES : 8)
typedef float Few __attribute__((vector_size(4 * PART)));

/* Some rows of H. */
INLINE void activate(const Hidden *a, int64_t first, int64_t rows, float *h) {
    for (int64_t r = 0; r < rows; r++) {
        const float *z = a->z + (first + r) * a->z_stride;
        float *to = h + r * a->width;
        if (!a->z) { /* L R */
            const float *left = a->left + (first + r) * a->rank;
            z = to;
            int64_t j = 0;
            for (; j + LANES <= a->width; j += LANES) {
                Lane sum = {0}, x;
                for (int k = 0; k < a->rank; k++) {
                    memcpy(&x, a->right + k * a->width + j, sizeof x);
                    sum += left[k] * x;
                }
                memcpy(to + j, &sum, sizeof sum);
            }
            for (; j < a->width; j++) {
                to[j] = 0.0f;
                for (int k = 0; k < a->rank; k++)
                    to[j] += left[k] * a->right[k * a->width + j];
            }
        }
        drop_row(z, a->bias, to, a->width, a->drop, first + r, 1);
    }
}

/* `rows` rows of H W, where W has `parts` times PART columns, of which c are asked. */
INLINE void multiply(const float *h, const float *w, float *out, int64_t stride,
                     int64_t width, int c, const int rows, const int parts) {
    Few sum[8][8];
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < parts; p++) sum[r][p] = (Few){0};
    for (int64_t j = 0; j < width; j++)
        for (int p = 0; p < parts; p++) {
            Few some;
            memcpy(&some, w + (j * parts + p) * PART, sizeof some);
            for (int r = 0; r < rows; r++) sum[r][p] += h[r * width + j] * some;
        }
    for (int r = 0; r < rows; r++) memcpy(out + r * stride, sum[r], 4 * (size_t)c);
}

/* As many rows at once as there are registers for. */
INLINE void multiply_rows(const float *h, const float *w, float *out, int64_t stride,
                          int64_t width, int c, int64_t rows, const int eights) {
    const int parts = eights * 8 / PART, most = parts > 4 ? 1 : 8 / parts;
    int64_t r = 0;
    for (; r + most <= rows; r += most)
        multiply(h + r * width, w, out + r * stride, stride, width, c, most, parts);
    for (; r < rows; r++)
        multiply(h + r * width, w, out + r * stride, stride, width, c, 1, parts);
}

static void hidden(const void *task, int64_t block, int thread) {
    const Hidden a = *(const Hidden *)task;
    float *h = a.scratch + thread * HIDDEN_ROWS * a.width;
    const int64_t first = block * BLOCK_ROWS;
    const int64_t end = first + BLOCK_ROWS < a.rows ? first + BLOCK_ROWS : a.rows;
    for (int64_t i = first; i < end; i += HIDDEN_ROWS) {
        const int64_t rows = end - i < HIDDEN_ROWS ? end - i : HIDDEN_ROWS;
        activate(&a, i, rows, h);
        for (int at = 0; at < a.c; at += TOGETHER) {
            const int c = a.c - at < TOGETHER ? a.c - at : TOGETHER;
            const float *w = a.weight + at * a.width;
            float *out = a.out + i * a.out_stride + at;
            switch ((c + 7) / 8) {
#define CASE(n)                                                              \
    case n: multiply_rows(h, w, out, a.out_stride, a.width, c, rows, n); break;
                CASE(1)
                CASE(2)
                CASE(3)
                CASE(4)
            }
        }
    }
}

/* `rows` rows and as many columns, from `at` on, of the gradients as a vector has. */
#define BACK(NAME, COUNT)                                                              \
    INLINE void NAME(const Hidden a, float *sums, const float *h, int64_t first,       \
                     int64_t at, const int rows) {                                     \
        typedef float Vector __attribute__((vector_size(4 * COUNT)));                  \
        typedef int32_t Where __attribute__((vector_size(4 * COUNT)));                 \
        const float *g = a.grad + first * a.out_stride;                                \
        Vector seen[ROWS], through[ROWS], w, sum;                                      \
        for (int r = 0; r < rows; r++) {                                               \
            memcpy(&seen[r], h + r * a.width + at, sizeof w);                          \
            through[r] = (Vector){0};                                                  \
        }                                                                              \
        for (int k = 0; k < a.c; k++) {                                                \
            memcpy(&w, a.weight + k * a.width + at, sizeof w);                         \
            memcpy(&sum, sums + k * a.width + at, sizeof w);                           \
            for (int r = 0; r < rows; r++) {                                           \
                float one = g[r * a.out_stride + k];                                   \
                through[r] += one * w;                                                 \
                sum += one * seen[r];                                                  \
            }                                                                          \
            memcpy(sums + k * a.width + at, &sum, sizeof w);                           \
        }                                                                              \
        sums += a.c * a.width + at;                                                    \
        memcpy(&sum, sums, sizeof w);                                                  \
        for (int r = 0; r < rows; r++) { /* NaN is open */                             \
            through[r] *= a.drop.scale;                                                \
            through[r] = (Vector)((Where)through[r] & ~(seen[r] <= 0.0f));             \
            sum += through[r];                                                         \
            if (a.grad_z)                                                              \
                memcpy(a.grad_z + (first + r) * a.z_stride + at, &through[r], sizeof w); \
        }                                                                              \
        memcpy(sums, &sum, sizeof w);                                                  \
        for (int k = 0; k < a.rank; k++) {                                             \
            sums += a.width;                                                           \
            memcpy(&sum, sums, sizeof w);                                              \
            for (int r = 0; r < rows; r++)                                             \
                sum += a.left[(first + r) * a.rank + k] * through[r];                  \
            memcpy(sums, &sum, sizeof w);                                              \
        }                                                                              \
    }
#define ROWS 4 /* at once */
BACK(back_lanes, LANES)
BACK(back_1, 1)

INLINE void back_rows(const Hidden a, float *sums, const float *h, int64_t first,
                      const int rows) {
    int64_t at = 0;
    for (; at + LANES <= a.width; at += LANES) back_lanes(a, sums, h, first, at, rows);
    for (; at < a.width; at++) back_1(a, sums, h, first, at, rows);
}

static void hidden_back(const void *task, int64_t block, int thread) {
    const Hidden a = *(const Hidden *)task;
    float *h = a.scratch + thread * HIDDEN_ROWS * a.width;
    float *sums = a.sums + block * (a.c + 1 + a.rank) * a.width;
    const int64_t first = block * BLOCK_ROWS;
    const int64_t end = first + BLOCK_ROWS < a.rows ? first + BLOCK_ROWS : a.rows;
    int64_t i = first;
    for (; i + ROWS <= end; i += ROWS) {
        activate(&a, i, ROWS, h);
        back_rows(a, sums, h, i, ROWS);
    }
    for (; i < end; i++) {
        activate(&a, i, 1, h);
        back_rows(a, sums, h, i, 1);
    }
}
