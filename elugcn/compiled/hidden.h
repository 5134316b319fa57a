/* What follows a propagation, bias, ReLU, dropout and the next weight, in one pass over
 * the hidden layer, and the gradients of all of it in another. And dropout of X.
 */

#define ROWS 4 /* that are worked on at once in the backward pass */

/* Columns of H W that are worked on at once. */
#define PART (LANES < 8 ? LANES : 8)
typedef float Part __attribute__((vector_size(4 * PART)));

/* X where its byte is below the level, else 0; without branches, which are random. */
INLINE void drop(const float *x, const uint8_t *drawn, int level, float *out,
                 int64_t count) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= 0u - (uint32_t)(drawn[i] < level);
        memcpy(out + i, &bits, 4);
    }
}

/* H = ReLU(Z + b), zero where a byte is not below the level; without bytes nowhere. */
INLINE void activate(const float *z, const float *bias, const uint8_t *drawn, int level,
                     float *h, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i++) {
        const float *from = z + i * width;
        float *to = h + i * width;
#pragma GCC ivdep /* z may be h: no entry is read again */
        for (int64_t j = 0; j < width; j++) {
            float v = from[j] + bias[j];
            to[j] = v < 0.0f ? 0.0f : v; /* NaN stays */
        }
    }
    if (drawn) drop(h, drawn, level, h, rows * width);
}

/* `rows` rows of H W, where W has `parts` times PART columns, of which c are asked. */
INLINE void multiply(const float *h, const float *w, float *out, int64_t stride,
                     int64_t width, int c, const int rows, const int parts) {
    Part sum[8][8];
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < parts; p++) sum[r][p] = (Part){0};
    for (int64_t j = 0; j < width; j++)
        for (int p = 0; p < parts; p++) {
            Part some;
            memcpy(&some, w + (j * parts + p) * PART, sizeof some);
            for (int r = 0; r < rows; r++) sum[r][p] += h[r * width + j] * some;
        }
    for (int r = 0; r < rows; r++) memcpy(out + r * stride, sum[r], 4 * (size_t)c);
}

/* What is asked for comes by value: what is written may not change it.
 * As many rows at once as there are registers for. */
INLINE void activated(const Hidden a, const int eights) {
    const int parts = eights * 8 / PART, most = parts > 4 ? 1 : 8 / parts;
    for (int64_t i = 0; i < a.rows; i += most) {
        int64_t rows = a.rows - i < most ? a.rows - i : most;
        int64_t at = i * a.width;
        activate(a.z + at, a.bias, a.drawn ? a.drawn + at : 0, a.level, a.h + at, rows,
                 a.width);
        float *h = a.h + at, *out = a.out + i * a.stride;
        if (rows == most)
            multiply(h, a.weight, out, a.stride, a.width, a.c, most, parts);
        else
            for (int r = 0; r < rows; r++)
                multiply(h + r * a.width, a.weight, out + r * a.stride, a.stride,
                         a.width, a.c, 1, parts);
    }
}

static void activated_product(const Hidden *a) {
    switch ((a->c + 7) / 8) {
        case 1: activated(*a, 1); break;
        case 2: activated(*a, 2); break;
        case 3: activated(*a, 3); break;
        default: activated(*a, 4);
    }
}

/* `rows` rows and as many columns, from `at` on, of the gradients as a vector has. */
#define BACKWARD(NAME, MANY)                                                           \
    INLINE void NAME(const Back a, const float *g, const float *h, float *out,         \
                     int64_t at, const int rows) {                                     \
        typedef float Lane __attribute__((vector_size(4 * MANY)));                    \
        typedef int32_t Bits __attribute__((vector_size(4 * MANY)));                  \
        Lane seen[ROWS], through[ROWS], w, sum;                                        \
        for (int r = 0; r < rows; r++) {                                               \
            memcpy(&seen[r], h + r * a.width + at, sizeof w);                          \
            through[r] = (Lane){0};                                                    \
        }                                                                              \
        for (int k = 0; k < a.c; k++) {                                                \
            memcpy(&w, a.weight + k * a.width + at, sizeof w);                         \
            memcpy(&sum, a.sums + k * a.width + at, sizeof w);                         \
            for (int r = 0; r < rows; r++) {                                           \
                float one = g[r * a.stride + k];                                       \
                through[r] += one * w;                                                 \
                sum += one * seen[r];                                                  \
            }                                                                          \
            memcpy(a.sums + k * a.width + at, &sum, sizeof w);                         \
        }                                                                              \
        memcpy(&sum, a.bias + at, sizeof w);                                           \
        for (int r = 0; r < rows; r++) { /* NaN is open */                             \
            through[r] = (Lane)((Bits)through[r] & ~(seen[r] <= 0.0f));                \
            sum += through[r];                                                         \
            memcpy(out + r * a.width + at, &through[r], sizeof w);                     \
        }                                                                              \
        memcpy(a.bias + at, &sum, sizeof w);                                           \
    }
BACKWARD(backward_many, LANES)
BACKWARD(backward_4, 4)

INLINE void backward(const Back a, int64_t i, const int rows) {
    const float *g = a.grad + i * a.stride, *h = a.h + i * a.width;
    float *out = a.out + i * a.width;
    int64_t at = 0;
    for (; at + LANES <= a.width; at += LANES) backward_many(a, g, h, out, at, rows);
    for (; at < a.width; at += 4) backward_4(a, g, h, out, at, rows);
}

static void activated_backward(const Back *a) {
    int64_t i = 0;
    for (; i + ROWS <= a->rows; i += ROWS) backward(*a, i, ROWS);
    for (; i < a->rows; i++) backward(*a, i, 1);
}

static void keep(const float *x, const uint8_t *drawn, int level, float *out,
                       int64_t count) {
    drop(x, drawn, level, out, count);
}

/* The same for an X of zeros and ones: `never` is 255 where it is zero, else 0. */
static void ones(const uint8_t *drawn, const uint8_t *never, int level, float *out,
                       int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (drawn[i] | never[i]) < level ? 1.0f : 0.0f;
}
