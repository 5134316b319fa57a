/* Random bits from a counter; workspace.py has the same in PyTorch.
 *
 * A row has 64 random bits, its key mixed with its number. Columns come in blocks of 64
 * that share 16 words of 32 bits: column j has byte j / 16 % 4 of word j % 16. So a
 * vector of words serves as many columns at once, four times.
 */

#define GOLDEN 0x9E3779B97F4A7C15u

/* LANES numbers are worked on at once. They may also be read and written one by one. */
typedef float Lane __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t Bits __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * LANES), may_alias));

INLINE uint64_t random_of_row(uint64_t key, int64_t row) {
    uint64_t x = key + ((uint64_t)row + 1) * GOLDEN;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* LANES words of a row, from number `at` on. */
INLINE Words random_words(uint64_t of_row, int64_t at) {
    static const uint32_t number[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                        8, 9, 10, 11, 12, 13, 14, 15};
    Words x;
    memcpy(&x, number, sizeof x);
    x = (x + (uint32_t)at) * 0x9E3779B9u + (uint32_t)of_row;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15) ^ (uint32_t)(of_row >> 32)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}

/* All bits where an entry is kept, for the byte `q` of each word. */
INLINE Bits kept(Words words, int q, int32_t level) {
    return (Bits)((words >> (8 * q)) & 255) < level;
}

INLINE Lane only(Bits where, Lane x) { return (Lane)((Bits)x & where); }

/* What is done to `some` entries of a row, at most LANES. */
INLINE void pass_some(const float *x, const float *bias, float *out, const int64_t some,
                      Bits where, float scale, const int relu) {
    Lane v = {0}, b = {0};
    memcpy(&v, x, 4 * (size_t)some);
    if (relu) {
        memcpy(&b, bias, 4 * (size_t)some);
        v += b;
        v = only(~(v < 0.0f), v); /* NaN stays */
    }
    v = only(where, v * scale);
    memcpy(out, &v, 4 * (size_t)some);
}

/* A row of drop(X), or of drop(ReLU(X + b)) with `relu`; x may be out. */
INLINE void drop_row(const float *x, const float *bias, float *out, int64_t width,
                     const Drop drop, int64_t row, const int relu) {
    const Bits all = {0};
    if (drop.level > 255) {
        int64_t j = 0;
        for (; j + LANES <= width; j += LANES)
            pass_some(x + j, bias + j, out + j, LANES, ~all, 1.0f, relu);
        if (j < width)
            pass_some(x + j, bias + j, out + j, width - j, ~all, 1.0f, relu);
        return;
    }
    const uint64_t of_row = random_of_row(drop.key, row);
    for (int64_t at = 0; at < width; at += 64)
        for (int g = 0; g < 16; g += LANES) {
            const Words words = random_words(of_row, at / 4 + g);
            for (int q = 0; q < 4; q++) {
                const int64_t j = at + 16 * q + g;
                const Bits where = kept(words, q, drop.level);
                if (j + LANES <= width)
                    pass_some(x + j, bias + j, out + j, LANES, where, drop.scale, relu);
                else if (j < width)
                    pass_some(x + j, bias + j, out + j, width - j, where, drop.scale,
                              relu);
            }
        }
}

static void mask(const void *task, int64_t block, int thread) {
    const Mask a = *(const Mask *)task;
    const int64_t size = a.rows - block * BLOCK_ROWS;
    const int64_t end = block * BLOCK_ROWS + (size < BLOCK_ROWS ? size : BLOCK_ROWS);
    (void)thread;
    for (int64_t i = block * BLOCK_ROWS; i < end; i++)
        drop_row(a.x + i * a.width, 0, a.out + i * a.width, a.width, a.drop,
                 a.first + i, 0);
}
