/* The module elugcn.engine._loops; addresses are numbers, which compiled.py checks. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "loops.h"

#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <pthread.h>
#endif

typedef unsigned long long Address;
#define AT(type, address) ((type *)(uintptr_t)(address))
#define MAX_THREADS 256

static const Loops *loops = &loops_of_any;

/* Take the loops for registers of at most so many floats; how many they now have. */
static int widest(int lanes) {
    loops = &loops_of_any;
#ifdef HAS_WIDER
    __builtin_cpu_init();
    if (lanes >= 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        loops = &loops_of_256;
    if (lanes >= 16 && loops == &loops_of_256 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        loops = &loops_of_512;
#endif
    (void)lanes;
    return loops->lanes;
}

/* What several threads share: each takes the next block until there are no more. */
typedef struct {
    Loop *loop;
    const void *task;
    int64_t blocks, next;
    int threads;
} Work;

static void *work(void *shared) {
    Work *w = shared;
    const int thread = __atomic_fetch_add(&w->threads, 1, __ATOMIC_RELAXED);
    for (;;) {
        const int64_t block = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
        if (block >= w->blocks) return NULL;
        w->loop(w->task, block, thread);
    }
}

static void run(Loop *loop, const void *task, int64_t blocks, int threads) {
    Work w = {loop, task, blocks, 0, 0};
#ifndef _WIN32
    pthread_t started[MAX_THREADS];
    int count = 0;
    while (count + 1 < threads && count + 1 < blocks &&
           !pthread_create(&started[count], NULL, work, &w))
        count++;
#endif
    work(&w);
#ifndef _WIN32
    for (int i = 0; i < count; i++) pthread_join(started[i], NULL);
#endif
}

static int64_t blocks_of(int64_t rows) { return (rows + BLOCK_ROWS - 1) / BLOCK_ROWS; }

/* Threads that are worth starting. */
static int useful(int threads, int64_t blocks) {
    const int64_t most = blocks < MAX_THREADS ? blocks : MAX_THREADS;
    return threads < 1 || most < 1 ? 1 : threads < most ? threads : (int)most;
}

/* Memory for vectors. */
static void *aligned(size_t size, void **whole) {
    *whole = calloc(size + 64, 1);
    return *whole ? (void *)(((uintptr_t)*whole + 63) / 64 * 64) : NULL;
}

/* Other threads of Python may run meanwhile. */
#define FREELY(...)        \
    Py_BEGIN_ALLOW_THREADS \
    __VA_ARGS__;           \
    Py_END_ALLOW_THREADS

static PyObject *py_widest(PyObject *self, PyObject *args) {
    int lanes;
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &lanes)) return NULL;
    return PyLong_FromLong(widest(lanes));
}

static PyObject *py_mask(PyObject *self, PyObject *args) {
    Address x, out, key;
    long long rows, width, first;
    Mask a;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKLLLKifi", &x, &out, &rows, &width, &first, &key,
                          &a.drop.level, &a.drop.scale, &threads))
        return NULL;
    a.x = AT(float, x), a.out = AT(float, out), a.drop.key = key;
    a.rows = rows, a.width = width, a.first = first;
    const int64_t blocks = blocks_of(rows);
    FREELY(run(loops->mask, &a, blocks, useful(threads, blocks)))
    Py_RETURN_NONE;
}

/* Columns are shared by several threads in whole cache lines. */
static int64_t chunk_of(int64_t width, int threads) {
    return threads > 1 ? 16 : width < 1 ? 1 : width;
}

static PyObject *py_product(PyObject *self, PyObject *args) {
    Address crow, col, value, z, bias, out, key;
    long long rows, width;
    Sparse a;
    int transposed, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKKLLiKifi", &crow, &col, &value, &z, &bias, &out,
                          &rows, &width, &transposed, &key, &a.drop.level,
                          &a.drop.scale, &threads))
        return NULL;
    a.crow = AT(int32_t, crow), a.col = AT(int32_t, col), a.value = AT(float, value);
    a.z = AT(float, z), a.bias = AT(float, bias), a.out = AT(float, out);
    a.rows = rows, a.width = width, a.drop.key = key;
    a.chunk = chunk_of(width, threads);
    const int64_t blocks = transposed ? (width + a.chunk - 1) / a.chunk : blocks_of(rows);
    threads = useful(threads, blocks);
    a.scratch = NULL, a.scratch_size = a.most = 0;
    if (a.drop.level < 256) {
        for (int64_t first = 0; first < rows; first += BLOCK_ROWS) {
            int64_t end = first + BLOCK_ROWS < rows ? first + BLOCK_ROWS : rows;
            int64_t size = a.crow[end] - a.crow[first] + 1;
            a.most = size > a.most ? size : a.most;
        }
        a.scratch_size = 4 * (BLOCK_ROWS + 1 + 2 * a.most);
        a.scratch = malloc((size_t)(threads * a.scratch_size));
        if (!a.scratch) return PyErr_NoMemory();
    }
    FREELY(run(transposed ? loops->product_t : loops->product, &a, blocks, threads))
    free(a.scratch);
    Py_RETURN_NONE;
}

/* W, width×c, with eight columns at a time beside each other: what is missing is 0. */
static void in_eights(const float *w, float *to, int64_t width, int c) {
    for (int at = 0; at < c; at += 32) {
        const int some = c - at < 32 ? c - at : 32, filled = (some + 7) / 8 * 8;
        for (int64_t j = 0; j < width; j++)
            memcpy(to + at * width + j * filled, w + j * c + at, 4 * (size_t)some);
    }
}

static PyObject *py_hidden(PyObject *self, PyObject *args) {
    Address z, left, right, bias, weight, out, key;
    long long rows, width, z_stride, out_stride;
    int threads;
    Hidden a;
    (void)self;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "KLKKiKKKLLLiKifi", &z, &z_stride, &left, &right, &a.rank,
                          &bias, &weight, &out, &out_stride, &rows, &width, &a.c, &key,
                          &a.drop.level, &a.drop.scale, &threads))
        return NULL;
    a.z = AT(float, z), a.left = AT(float, left), a.right = AT(float, right);
    a.bias = AT(float, bias), a.out = AT(float, out), a.drop.key = key;
    a.rows = rows, a.width = width, a.z_stride = z_stride, a.out_stride = out_stride;
    const int64_t blocks = blocks_of(rows);
    threads = useful(threads, blocks);
    const size_t of_weight = (size_t)(width * (a.c + 7)), of_rows = HIDDEN_ROWS * width;
    float *scratch = calloc(of_weight + threads * of_rows + 1, 4);
    if (!scratch) return PyErr_NoMemory();
    a.weight = scratch, a.scratch = scratch + of_weight;
    FREELY(in_eights(AT(float, weight), scratch, width, a.c);
           run(loops->hidden, &a, blocks, threads))
    free(scratch);
    Py_RETURN_NONE;
}

static PyObject *py_hidden_back(PyObject *self, PyObject *args) {
    Address grad, z, grad_z, left, right, bias, weight, sums, key;
    long long rows, width, z_stride, out_stride;
    int threads;
    Hidden a;
    (void)self;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "KLKKLKKiKKKLLiKifi", &grad, &out_stride, &z, &grad_z,
                          &z_stride, &left, &right, &a.rank, &bias, &weight, &sums,
                          &rows, &width, &a.c, &key, &a.drop.level, &a.drop.scale,
                          &threads))
        return NULL;
    a.grad = AT(float, grad), a.z = AT(float, z), a.grad_z = AT(float, grad_z);
    a.left = AT(float, left), a.right = AT(float, right), a.bias = AT(float, bias);
    a.drop.key = key, a.rows = rows, a.width = width;
    a.z_stride = z_stride, a.out_stride = out_stride;
    const int64_t blocks = blocks_of(rows), count = (a.c + 1 + a.rank) * width;
    threads = useful(threads, blocks);
    const size_t of_weight = (size_t)(width * a.c), of_rows = HIDDEN_ROWS * width;
    float *scratch = malloc(4 * (of_weight + threads * of_rows) + 1);
    a.sums = calloc((size_t)(blocks * count) + 1, 4);
    if (scratch && a.sums) {
        const float *w = AT(float, weight);
        float *total = AT(float, sums);
        for (int64_t j = 0; j < width; j++)
            for (int k = 0; k < a.c; k++) scratch[k * width + j] = w[j * a.c + k];
        a.weight = scratch, a.scratch = scratch + of_weight;
        FREELY(run(loops->hidden_back, &a, blocks, threads);
               for (int64_t i = 0; i < blocks * count; i++)
                   total[i % count] += a.sums[i])
    }
    free(scratch);
    free(a.sums);
    if (!scratch || !a.sums) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *py_two_views(PyObject *self, PyObject *args) {
    Address wide, grad, weight, bias, sums, target, each, kind;
    long long n;
    int threads;
    TwoViews a;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKKKKLiffffi", &wide, &grad, &weight, &bias, &sums,
                          &target, &each, &kind, &n, &a.c, &a.tau, &a.eta, &a.contrast,
                          &a.entropy, &threads))
        return NULL;
    a.wide = AT(float, wide), a.grad = AT(float, grad), a.weight = AT(float, weight);
    a.bias = AT(float, bias), a.target = AT(int64_t, target), a.each = AT(float, each);
    a.kind = AT(int8_t, kind), a.rows = n;
    const int64_t blocks = blocks_of(n), count = LOSS_SUMS(a.c);
    threads = useful(threads, blocks);
    void *whole;
    a.scratch = aligned((size_t)(threads * count * 4 * loops->lanes), &whole);
    a.d = malloc(4 * (size_t)n + 1);
    a.sums = calloc((size_t)(blocks * count) + 1, sizeof(double));
    double loss = 0.0, *total = AT(double, sums);
    if (a.scratch && a.d && a.sums) {
        FREELY(run(loops->similarity, &a, blocks, threads); loss = loops->contrast(&a);
               run(loops->two_views, &a, blocks, threads);
               for (int64_t i = 0; i < blocks * count; i++) {
                   if (i % count < count - 1)
                       total[i % count] += a.sums[i];
                   else
                       loss += a.sums[i];
               })
    }
    const int failed = !a.scratch || !a.d || !a.sums;
    free(whole);
    free(a.d);
    free(a.sums);
    return failed ? PyErr_NoMemory() : PyFloat_FromDouble(loss);
}

static PyMethodDef methods[] = {
    {"widest", py_widest, METH_VARARGS, NULL},
    {"mask", py_mask, METH_VARARGS, NULL},
    {"product", py_product, METH_VARARGS, NULL},
    {"hidden", py_hidden, METH_VARARGS, NULL},
    {"hidden_back", py_hidden_back, METH_VARARGS, NULL},
    {"two_views", py_two_views, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_loops", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void) {
    widest(16);
    return PyModule_Create(&module);
}
