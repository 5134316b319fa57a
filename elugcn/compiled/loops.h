/* The loops that there are, for one kind of processor. */
#ifndef ELUGCN_LOOPS_H
#define ELUGCN_LOOPS_H

#include <stdint.h>

/* The same code for several generations of processors, see use() of module.c. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_WIDER
#endif

typedef struct {
    float tau, eta, contrast, entropy;
} Scales;

/* H = dropout(ReLU(Z + b)), n×h, and H W. */
typedef struct {
    const float *z, *bias; /* z may be h */
    const uint8_t *drawn;  /* n×h, or none: nothing is dropped */
    float *h;
    const float *weight; /* W with its columns filled up to a multiple of eight */
    float *out;          /* n×c, rows are `stride` apart */
    int64_t rows, width, stride;
    int level, c;
} Hidden;

/* The gradients, given that of H W. */
typedef struct {
    const float *grad;   /* n×c, rows are `stride` apart */
    const float *weight; /* Wᵀ, c×h */
    const float *h;
    float *out;         /* of Z, n×h; may be h */
    float *sums, *bias; /* of Wᵀ, c×h, and b: added to what is there */
    int64_t rows, width, stride;
    int c;
} Back;

/* A Z for an A in compressed rows. */
typedef struct {
    const int32_t *crow, *col; /* crow, n+1 of them, need not begin at 0 */
    const float *value, *z;    /* z is m×k */
    float *out;                /* n×k */
    int64_t rows, width;       /* n, k */
} Sparse;

/* What each does is said where it is written, in the file of that subject. */
typedef struct {
    void (*draw_words)(void *torch_state, uint64_t *out, int64_t count);
    void (*sparse_product)(const Sparse *a);
    void (*activated_product)(const Hidden *a);
    void (*activated_backward)(const Back *a);
    void (*keep)(const float *x, const uint8_t *drawn, int level, float *out,
                 int64_t count);
    void (*ones)(const uint8_t *drawn, const uint8_t *never, int level, float *out,
                 int64_t count);
    double (*two_views)(const float *wide, float *grad, const float *weight,
                        const float *bias, double *sums, const int64_t *target,
                        const float *each, const int8_t *kind, float *d, int64_t n,
                        int c, Scales s, void *room);
} Loops;

extern const Loops loops_of_any, loops_of_256, loops_of_512;

#endif
