/* The loops that there are, for one kind of processor.
 *
 * A loop handles one block of rows of its task. Blocks are always the same, however
 * many threads share them, so results are, too. Sums over all rows are computed per
 * block and then added up in order.
 */
#ifndef ELUGCN_LOOPS_H
#define ELUGCN_LOOPS_H

#include <stdint.h>

/* The same code for several generations of processors, see widest() in module.c. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_WIDER
#endif

#define BLOCK_ROWS 2048
#define MAX_CLASSES 64 /* of the loss */

/* Which entries are dropped, see random.h. */
typedef struct {
    uint64_t key;
    int32_t level; /* random bytes below it keep an entry; 256: nothing is dropped */
    float scale;   /* of kept entries */
} Drop;

/* out = drop(X), n×m. */
typedef struct {
    const float *x;
    float *out;
    int64_t rows, width, first; /* first: number of row 0 in the whole matrix */
    Drop drop;
} Mask;

/* drop(A) Z + b for an A in compressed rows, or drop(A)ᵀ Z. */
typedef struct {
    const int32_t *crow, *col;
    const float *value, *z, *bias; /* bias: for every row, or none */
    float *out;
    int64_t rows, width; /* n; columns of z */
    int64_t chunk;       /* columns of a block of the transposed product */
    Drop drop;
    void *scratch; /* kept entries of a block, for each thread */
    int64_t scratch_size, most;
} Sparse;

/* H W for H = drop(ReLU(Z + b)), n×h; Z is given whole or as L R; and its gradients. */
typedef struct {
    const float *z;            /* n×h, rows are z_stride apart; or none */
    const float *left, *right; /* L, n×r, and R, r×h */
    const float *bias, *weight; /* W for eight columns at a time; backward: Wᵀ, c×h */
    const float *grad;          /* of H W, n×c, rows are out_stride apart */
    float *out;                 /* H W, n×c, rows are out_stride apart */
    float *grad_z;              /* n×h, rows are z_stride apart; may be z; or none */
    float *sums; /* of each block: gradients of Wᵀ, c×h, of b, (h,), and of R, r×h */
    float *scratch; /* some rows of H, for each thread */
    int64_t rows, width, z_stride, out_stride;
    int rank, c;
    Drop drop;
} Hidden;

/* Eq. 12 and its gradients, see two_views.h. */
typedef struct {
    const float *wide, *weight, *bias, *each;
    const int64_t *target;
    const int8_t *kind;
    float *grad, *d;
    double *sums;  /* of each block: gradients of W, c×c, and b, (c,), and the loss */
    void *scratch; /* single-precision sums of each thread */
    int64_t rows;
    int c;
    float tau, eta, contrast, entropy;
} TwoViews;

/* A block of a task, by one of several threads. */
typedef void Loop(const void *task, int64_t block, int thread);

/* What each does is said where it is written, in the file of that subject. */
typedef struct {
    Loop *mask, *product, *product_t, *hidden, *hidden_back, *similarity, *two_views;
    double (*contrast)(const TwoViews *a);
    int lanes;
} Loops;

extern const Loops loops_of_any, loops_of_256, loops_of_512;

/* Entries a hidden layer needs of scratch for each thread, and a loss. */
#define HIDDEN_ROWS 8
#define LOSS_SUMS(c) ((c) * (c) + (c) + 1)

#endif
