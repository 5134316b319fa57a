/* Eq. 12 for two views side by side, value and gradient; two_view_loss.py has the
 * formulas, in the same names.
 *
 * Some nodes at a time go through all of it in registers, one in each lane.
 */

#define MAX_CLASSES 32
#define FLUSH 64 /* tiles whose sums are single precision */
#define TINY 1e-24f

/* LANES nodes are worked on at once. They may also be read and written one by one. */
typedef float Lane __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t Bits __attribute__((vector_size(4 * LANES)));

INLINE Lane all(float x) { return x - (Lane){0}; }
INLINE Lane pick(Bits where, Lane a, Lane b) {
    return (Lane)(((Bits)a & where) | ((Bits)b & ~where));
}
/* Not a number stays what it is, here and in all that follows: see training. */
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
    Lane y = (Lane)((Bits)x - (k << 23)) - 1.0f;
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

/* Views of `some` nodes, n×2c, to lanes (those of others are zero) and back. */
INLINE void load(Tile *t, const float *wide, int some, int c) {
    if (some < LANES)
        for (int j = 0; j < c; j++) t->z[0][j] = t->z[1][j] = (Lane){0};
    for (int v = 0; v < 2; v++)
        for (int j = 0; j < c; j++) {
            float *to = (float *)&t->z[v][j];
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

/* What `project` found, and where it is found again. */
INLINE Lane *put(const Tile *t, Lane *kept, int c) {
    for (int v = 0; v < 2; v++)
        for (int j = 0; j < c; j++) *kept++ = t->e[v][j];
    *kept++ = t->inverse[0], *kept++ = t->inverse[1], *kept++ = t->d;
    return kept;
}

INLINE const Lane *get(Tile *t, const Lane *kept, int c) {
    for (int v = 0; v < 2; v++)
        for (int j = 0; j < c; j++) t->e[v][j] = *kept++;
    t->inverse[0] = *kept++, t->inverse[1] = *kept++, t->d = *kept++;
    return kept;
}

INLINE int tile_size(int64_t left) { return left < LANES ? (int)left : LANES; }

/* The contrast of d and its gradient, which takes the place of d. A kind is 1 for ELU,
 * 2 for NELU nodes, 0 for others. */
static double contrast_of(float *d, const int8_t *kind, int64_t n,
                                       float tau, float scale) {
    float top[3] = {-INFINITY, -INFINITY, -INFINITY};
    double sum[3] = {0}, count[3] = {0};
    for (int64_t i = 0; i < n; i++) {
        float *of = top + kind[i];
        *of = d[i] > *of ? d[i] : *of;
        count[kind[i]]++;
    }
    for (int64_t i = 0; i < n; i += LANES) {
        int some = tile_size(n - i);
        Lane x = {0};
        for (int l = 0; l < some; l++)
            x[l] = d[i + l] - (kind[i + l] == 1 ? top[1] : top[2]);
        x = exp_of(x / tau);
        for (int l = 0; l < some; l++) {
            d[i + l] = x[l];
            sum[kind[i + l]] += x[l];
        }
    }
    double apart = (top[2] - top[1]) / tau;
    apart += log(sum[2] / count[2]) - log(sum[1] / count[1]);
    double pull = scale / (1.0 + exp(-apart)) / tau;
    const float by[3] = {0.0f, (float)(-pull / sum[1]), (float)(pull / sum[2])};
    for (int64_t i = 0; i < n; i++) d[i] *= by[kind[i]];
    return scale * (apart > 0 ? apart + log1p(exp(-apart)) : log1p(exp(apart)));
}

static void alike(const float *wide, const float *weight, const float *bias,
                               float *d, int64_t n, int c, Lane *kept) {
    Tile t;
    for (int64_t i = 0; i < n; i += LANES) {
        int some = tile_size(n - i);
        load(&t, wide + i * 2 * c, some, c);
        project(&t, weight, bias, c);
        if (kept) kept = put(&t, kept, c);
        for (int l = 0; l < some; l++) d[i + l] = t.d[l];
    }
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
INLINE Lane output_terms(const Tile *t, Lane *m, const int64_t *target,
                         const float *weight, int some, int c, float eta,
                         float entropy) {
    Lane top = all(-INFINITY), sum = {0}, each = {0}, w = {0}, value = {0};
    for (int j = 0; j < c; j++) {
        m[j] = t->z[0][j] + eta * (t->z[1][j] - t->z[0][j]);
        top = pick(m[j] > top, m[j], top);
    }
    for (int j = 0; j < c; j++) sum += exp_of(m[j] - top);
    top += log_of(sum);
    for (int j = 0; j < c; j++) {
        m[j] -= top; /* log p */
        each += exp_of(m[j]) * m[j];
    }
    for (int l = 0; l < some; l++) {
        w[l] = weight[l];
        value[l] = -(w[l] * m[target[l]][l] + entropy * each[l]);
    }
    for (int j = 0; j < c; j++) m[j] = exp_of(m[j]) * (entropy * (each - m[j]) + w);
    for (int l = 0; l < some; l++) m[target[l]][l] -= w[l];
    return value;
}

typedef struct {
    Lane weight[MAX_CLASSES][MAX_CLASSES], bias[MAX_CLASSES], value;
} Sums;

INLINE double flushed(Lane *x) {
    double sum = 0.0;
    for (int l = 0; l < LANES; l++) sum += (*x)[l];
    *x = (Lane){0};
    return sum;
}

/* L; grad may be wide. d is room for n numbers; sums, which are zero, become the
 * gradients of W, c×c, and b. Where there is room for (2c + 3) times the nodes, a whole
 * multiple of 16 of them, the projection is not computed twice. */
static double two_views(const float *wide, float *grad, const float *weight,
                              const float *bias, double *sums, const int64_t *target,
                              const float *each, const int8_t *kind, float *d,
                              int64_t n, int c, Scales s, void *room) {
    const Lane *again = room;
    alike(wide, weight, bias, d, n, c, room);
    double loss = contrast_of(d, kind, n, s.tau, s.contrast);
    Tile t;
    Lane m[MAX_CLASSES], back[2][MAX_CLASSES];
    Sums now;
    memset(&now, 0, sizeof now);
    for (int64_t i = 0; i < n; i += LANES) {
        int some = tile_size(n - i);
        load(&t, wide + i * 2 * c, some, c);
        if (room)
            again = get(&t, again, c);
        else
            project(&t, weight, bias, c);
        Lane pull = {0};
        for (int l = 0; l < some; l++) pull[l] = d[i + l];
        through_head(&t, pull, c);
        now.value +=
            output_terms(&t, m, target + i, each + i, some, c, s.eta, s.entropy);
        for (int v = 0; v < 2; v++) {
            for (int j = 0; j < c; j++) {
                now.bias[j] += t.e[v][j];
                for (int k = 0; k < c; k++) now.weight[j][k] += t.e[v][j] * t.z[v][k];
            }
            for (int k = 0; k < c; k++) {
                Lane sum = (v ? s.eta : 1.0f - s.eta) * m[k];
                for (int j = 0; j < c; j++) sum += weight[j * c + k] * t.e[v][j];
                back[v][k] = sum;
            }
        }
        store(back, grad + i * 2 * c, some, c);
        if (i / LANES % FLUSH == FLUSH - 1 || i + LANES >= n) {
            loss += flushed(&now.value);
            for (int j = 0; j < c; j++) {
                for (int k = 0; k < c; k++) sums[j * c + k] += flushed(&now.weight[j][k]);
                sums[c * c + j] += flushed(&now.bias[j]);
            }
        }
    }
    return loss;
}
