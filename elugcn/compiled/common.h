/* What all files share. */
#ifndef ELUGCN_COMMON_H
#define ELUGCN_COMMON_H

#include <stdint.h>

/* The same code for several generations of processors; which is taken is decided when
 * the module is loaded. Elsewhere there is one, for what the compiler is told. */
#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <features.h>
#ifdef __GLIBC__
#define FOR_EACH_CPU \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef FOR_EACH_CPU
#define FOR_EACH_CPU
#endif

/* Inlined into each of them, so that it is compiled for each. */
#define INLINE static inline __attribute__((always_inline))

typedef struct {
    float tau, eta, contrast, entropy;
} Scales;

/* random.c */
void draw_words(void *torch_state, uint64_t *out, int64_t count);

/* hidden.c: H = dropout(ReLU(Z + b)), n×h, and H W. */
typedef struct {
    const float *z, *bias; /* z may be h */
    const uint8_t *drawn;  /* n×h, or none: nothing is dropped */
    float *h;
    const float *weight; /* W with its columns filled up to a multiple of eight */
    float *out;          /* n×c, rows are `stride` apart */
    int64_t rows, width, stride;
    int level, c;
} Hidden;
void activated_product(const Hidden *a);

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
void activated_backward(const Back *a);

void keep(const float *x, const uint8_t *drawn, int level, float *out, int64_t count);
void ones(const uint8_t *drawn, const uint8_t *never, int level, float *out,
          int64_t count);

/* two_views.c */
double two_views(const float *wide, float *grad, const float *weight, const float *bias,
                 double *sums, const int64_t *target, const float *each,
                 const int8_t *kind, float *d, int64_t n, int c, Scales s, void *room);

#endif
