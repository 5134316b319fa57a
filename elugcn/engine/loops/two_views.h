/* Eq. 12 for two views side by side, value and gradients.
 *
 *     M = (1-eta) z0 + eta z1      E = elu(W Z + b)   P = E / ||E||   d_i = p0_i · p1_i
 *     L = sum w_i CE(m_i, y_i) + contrast(d) + entropy(M)
 *
 * Only d couples the nodes: a first pass computes it, a second one the gradients. LANES
 * nodes at a time go through all of it in registers, one in each lane.
 */

#define FLUSH 64 /* tiles whose sums are single precision */
#define TINY 1e-24f

INLINE Lane all(float x) { return x - (Lane){0}; }
INLINE Lane pick(Bits where, Lane a, Lane b) {
    return (Lane)(((Bits)a & where) | ((Bits)b & ~where));
}
/* NaN stays NaN, here and in all that follows: training looks for it. */
INLINE Lane above(Lane x, float least) { return pick(x < least, all(least), x); }
INLINE Lane below(Lane x, float most) { return pick(x > most, all(most), x); }

/* e^x = s (1 + y) with s a power of two: y; for x in [-87, 88], beyond as at the ends. */
INLINE Lane exp_parts(Lane x, Lane *s) {
    const float magic = 12582912.0f; /* 1.5 * 2**23: adding it rounds to an integer */
    x = below(above(x, -87.0f), 88.0f);
    Lane k = x * 1.44269504088896341f + magic;
    *s = (Lane)(((Bits)k << 23) + 0x3f800000);
    k -= magic;
    Lane r = x - k * 0.693359375f + k * 2.12194440e-4f;
    Lane p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * r * r + r;
}

/* e^x, to 2 units in the last place. */
INLINE Lane exp_of(Lane x) {
    Lane s, y = exp_parts(x, &s);
    return (y + 1.0f) * s;
}

/* e^x - 1, as exact for small x: what is projected near 0 has a direction, too. */
INLINE Lane exp_less_one(Lane x) {
    Lane s, y = exp_parts(x, &s);
    return y * s + (s - 1.0f);
}

/* log x for normal positive x. */
INLINE Lane log_of(Lane x) {
    /* x = m 2^k with m in [sqrt(1/2), sqrt(2)) */
    Bits k = ((Bits)x - 0x3f3504f3) >> 23;
    Lane y = (Lane)((Bits)x - (Bits)((Words)k << 23)) - 1.0f;
    Lane z = y * y;
    Lane p = y * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * y + 1.1676998740e-1f;
    p = p * y - 1.2420140846e-1f;
    p = p * y + 1.4249322787e-1f;
    p = p * y - 1.6668057665e-1f;
    p = p * y + 2.0000714765e-1f;
    p = p * y - 2.4999993993e-1f;
    p = p * y + 3.3333331174e-1f;
    Lane whole = __builtin_convertvector(k, Lane) * 0.69314718056f;
    return whole + (p * y * z - 0.5f * z + y);
}

/* What a tile of nodes has: its views, E, 1/||E|| of each, and d. */
typedef struct {
    Lane z[2][MAX_CLASSES], e[2][MAX_CLASSES], inverse[2], d;
} Tile;

INLINE int tile_size(int64_t left) { return left < LANES ? (int)left : LANES; }

/* Views of `some` nodes, n×2c, to lanes (those of others are zero) and back. */
INLINE void load(Tile *t, const float *wide, int some, int c) {
    for (int v = 0; v < 2; v++)
        for (int j = 0; j < c; j++) {
            float *to = (float *)&t->z[v][j];
            if (some < LANES) t->z[v][j] = (Lane){0};
            for (int l = 0; l < some; l++) to[l] = wide[l * 2 * c + v * c + j];
        }
}

INLINE void store(Lane from[2][MAX_CLASSES], float *wide, int some, int c) {
    for (int v = 0; v < 2; v++)
        for (int j = 0; j < c; j++) {
            const float *of = (const float *)&from[v][j];
            for (int l = 0; l < some; l++) wide[l * 2 * c + v * c + j] = of[l];
        }
}

INLINE void project(Tile *t, const float *weight, const float *bias, int c) {
    t->d = (Lane){0};
    for (int v = 0; v < 2; v++) {
        Lane sum = {0};
        for (int j = 0; j < c; j++) {
            Lane u = all(bias[j]);
            for (int k = 0; k < c; k++) u += weight[j * c + k] * t->z[v][k];
            u = pick(u < 0.0f, exp_less_one(u), u);
            t->e[v][j] = u;
            sum += u * u;
        }
        sum = above(sum, TINY);
        for (int l = 0; l < LANES; l++) sum[l] = sqrtf(sum[l]);
        t->inverse[v] = 1.0f / sum;
    }
    for (int j = 0; j < c; j++) t->d += t->e[0][j] * t->e[1][j];
    t->d *= t->inverse[0] * t->inverse[1];
}

/* A block of d. */
static void similarity(const void *task, int64_t block, int thread) {
    const TwoViews *a = task;
    const int64_t first = block * BLOCK_ROWS;
    const int64_t end = first + BLOCK_ROWS < a->rows ? first + BLOCK_ROWS : a->rows;
    Tile t;
    (void)thread;
    for (int64_t i = first; i < end; i += LANES) {
        int some = tile_size(end - i);
        load(&t, a->wide + i * 2 * a->c, some, a->c);
        project(&t, a->weight, a->bias, a->c);
        memcpy(a->d + i, &t.d, 4 * (size_t)some);
    }
}

/* The contrast of d and its gradient, which takes the place of d. A kind is 1 for ELU,
 * 2 for NELU nodes, 0 for others. Zero if there are none of one kind. */
static double contrast(const TwoViews *a) {
    const float tau = a->tau;
    float *d = a->d, top[3] = {-INFINITY, -INFINITY, -INFINITY};
    double sum[3] = {0}, count[3] = {0};
    for (int64_t i = 0; i < a->rows; i++) {
        float *of = top + a->kind[i];
        *of = d[i] > *of ? d[i] : *of;
        count[a->kind[i]]++;
    }
    if (!count[1] || !count[2]) {
        memset(d, 0, 4 * (size_t)a->rows);
        return 0.0;
    }
    for (int64_t i = 0; i < a->rows; i += LANES) {
        int some = tile_size(a->rows - i);
        Lane x = {0};
        for (int l = 0; l < some; l++)
            x[l] = d[i + l] - (a->kind[i + l] == 1 ? top[1] : top[2]);
        x = exp_of(x / tau);
        for (int l = 0; l < some; l++) {
            d[i + l] = x[l];
            sum[a->kind[i + l]] += x[l];
        }
    }
    double apart = (top[2] - top[1]) / tau;
    apart += log(sum[2] / count[2]) - log(sum[1] / count[1]);
    double pull = a->contrast / (1.0 + exp(-apart)) / tau;
    const float by[3] = {0.0f, (float)(-pull / sum[1]), (float)(pull / sum[2])};
    for (int64_t i = 0; i < a->rows; i++) d[i] *= by[a->kind[i]];
    return a->contrast * (apart > 0 ? apart + log1p(exp(-apart)) : log1p(exp(apart)));
}

/* The gradient of W Z + b takes the place of E. */
INLINE void through_head(Tile *t, Lane pull, int c) {
    Lane one = t->inverse[0], other = t->inverse[1];
    for (int j = 0; j < c; j++) {
        Lane a = t->e[0][j], b = t->e[1][j], p = a * one, q = b * other;
        t->e[0][j] = (q - t->d * p) * (pull * one) * (below(a, 0.0f) + 1.0f);
        t->e[1][j] = (p - t->d * q) * (pull * other) * (below(b, 0.0f) + 1.0f);
    }
}

/* Cross-entropy and entropy of (1-eta) z0 + eta z1, whose gradient goes to m. */
INLINE Lane output_terms(const Tile *t, Lane *m, const TwoViews *a, int64_t i,
                         int some) {
    Lane top = all(-INFINITY), sum = {0}, each = {0}, w = {0}, value = {0};
    for (int j = 0; j < a->c; j++) {
        m[j] = t->z[0][j] + a->eta * (t->z[1][j] - t->z[0][j]);
        top = pick(m[j] > top, m[j], top);
    }
    for (int j = 0; j < a->c; j++) sum += exp_of(m[j] - top);
    top += log_of(sum);
    for (int j = 0; j < a->c; j++) {
        m[j] -= top; /* log p */
        each += exp_of(m[j]) * m[j];
    }
    for (int l = 0; l < some; l++) {
        w[l] = a->each[i + l];
        value[l] = -(w[l] * m[a->target[i + l]][l] + a->entropy * each[l]);
    }
    for (int j = 0; j < a->c; j++)
        m[j] = exp_of(m[j]) * (a->entropy * (each - m[j]) + w);
    for (int l = 0; l < some; l++) m[a->target[i + l]][l] -= w[l];
    return value;
}

/* A block of the gradients of the views; those of W and b, and the loss, to its sums. */
static void two_views(const void *task, int64_t block, int thread) {
    const TwoViews *a = task;
    const int c = a->c, count = LOSS_SUMS(c);
    const int64_t first = block * BLOCK_ROWS;
    const int64_t end = first + BLOCK_ROWS < a->rows ? first + BLOCK_ROWS : a->rows;
    double *sums = a->sums + block * count;
    Lane *now = (Lane *)a->scratch + thread * count;
    Tile t;
    Lane m[MAX_CLASSES], back[2][MAX_CLASSES];
    memset(now, 0, count * sizeof *now);
    for (int64_t i = first; i < end; i += LANES) {
        int some = tile_size(end - i);
        load(&t, a->wide + i * 2 * c, some, c);
        project(&t, a->weight, a->bias, c);
        Lane pull = {0};
        memcpy(&pull, a->d + i, 4 * (size_t)some);
        through_head(&t, pull, c);
        now[count - 1] += output_terms(&t, m, a, i, some);
        for (int v = 0; v < 2; v++) {
            for (int j = 0; j < c; j++) {
                now[c * c + j] += t.e[v][j];
                for (int k = 0; k < c; k++) now[j * c + k] += t.e[v][j] * t.z[v][k];
            }
            for (int k = 0; k < c; k++) {
                Lane sum = (v ? a->eta : 1.0f - a->eta) * m[k];
                for (int j = 0; j < c; j++) sum += a->weight[j * c + k] * t.e[v][j];
                back[v][k] = sum;
            }
        }
        store(back, a->grad + i * 2 * c, some, c);
        if (i / LANES % FLUSH == FLUSH - 1 || i + LANES >= end) {
            for (int j = 0; j < count; j++)
                for (int l = 0; l < LANES; l++) sums[j] += now[j][l];
            memset(now, 0, count * sizeof *now);
        }
    }
}
