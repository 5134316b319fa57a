/* The words that PyTorch's CPU generator draws, a Mersenne Twister's, several at once.
 *
 * PyTorch draws them one after the other. Its state comes and goes as the bytes of
 * get_state() and set_state(), so that nobody can tell who drew.
 */

#define SIZE 624
#define SHIFT 397

/* The bytes of get_state(), as far as they are read. */
typedef struct {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next;
    uint64_t state[SIZE];
} TorchState;

/* Words are written by halves. */
typedef uint32_t Half __attribute__((may_alias));

INLINE uint32_t twisted(uint32_t u, uint32_t v) {
    uint32_t mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
    return (mixed >> 1) ^ ((0u - (v & 1u)) & 0x9908b0dfu);
}

INLINE void next_state(uint32_t *mt) {
    int i;
    for (i = 0; i < SIZE - SHIFT; i++)
        mt[i] = mt[i + SHIFT] ^ twisted(mt[i], mt[i + 1]);
    for (; i < SIZE - 1; i++)
        mt[i] = mt[i + SHIFT - SIZE] ^ twisted(mt[i], mt[i + 1]);
    mt[i] = mt[i + SHIFT - SIZE] ^ twisted(mt[i], mt[0]);
}

INLINE uint32_t tempered(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* The next `count` words, as random_(-2**63, None) draws them. */
static void draw_words(void *torch_state, uint64_t *out, int64_t count) {
    TorchState *torch = torch_state;
    uint32_t mt[SIZE];
    Half *half = (Half *)out;
    int64_t done = 0, halves = 2 * count;
    int64_t next = (int64_t)torch->next, left = torch->left;
    for (int i = 0; i < SIZE; i++) mt[i] = (uint32_t)torch->state[i];
    while (done < halves) {
        if (left == 1) { /* one more than are left to be used */
            next_state(mt);
            left = SIZE + 1;
            next = 0;
        }
        int64_t some = left - 1 < halves - done ? left - 1 : halves - done;
        for (int64_t i = 0; i < some; i++) half[done + i] = tempered(mt[next + i]);
        done += some;
        next += some;
        left -= some;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* The half that was drawn first is the upper one. */
    for (int64_t i = 0; i < count; i++) out[i] = out[i] << 32 | out[i] >> 32;
#endif
    torch->next = (uint64_t)next;
    torch->left = (int32_t)left;
    for (int i = 0; i < SIZE; i++) torch->state[i] = mt[i];
}
