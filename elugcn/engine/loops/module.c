/* The module elugcn.engine._compiled: reads tensors, checks them, and runs the loops. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "loops.h"

#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <pthread.h>
#endif

#define MAX_THREADS 256
#define ANY (-1)
#define NUMBER(tuple, i) PyLong_AsLongLong(PyTuple_GetItem(tuple, i))

static const Loops *loops = &loops_of_any;

/* Attributes of torch, and the names of a tensor's. */
enum { FLOAT32, FLOAT64, INT8, INT32, INT64, THREADS,
       DTYPE, IS_CPU, SHAPE, STRIDE, DATA_PTR, COUNT };
static const char *const words[] = {"float32", "float64", "int8", "int32", "int64",
                                    "get_num_threads", "dtype", "is_cpu", "shape",
                                    "stride", "data_ptr"};
static PyObject *known[COUNT];

/* A matrix, or a vector as its only row. Rows are `stride` entries apart. */
typedef struct {
    void *at;
    int64_t rows, columns, stride;
} Matrix;

/* Read what PyTorch says of a tensor. Everything that C is told goes through here.
 *
 * False, with an exception, unless it is on the CPU, has this dtype and so many rows and
 * columns (or ANY), and the entries of a row stand side by side; `whole`: rows, too.
 */
static int take(PyObject *x, int dtype, int64_t rows, int64_t columns, int whole,
                Matrix *to) {
    PyObject *got[COUNT] = {NULL};
    int right = 1;
    for (int i = DTYPE; i < COUNT && right; i++) {
        got[i] = i < STRIDE ? PyObject_GetAttr(x, known[i])
                            : PyObject_CallMethodObjArgs(x, known[i], NULL);
        right = got[i] && (i != DTYPE || got[i] == known[dtype]) &&
                (i != IS_CPU || got[i] == Py_True);
    }
    const Py_ssize_t dims = right ? PyTuple_Size(got[SHAPE]) : 0;
    right = dims == 1 || dims == 2;
    if (right) {
        to->at = PyLong_AsVoidPtr(got[DATA_PTR]);
        to->rows = dims == 2 ? NUMBER(got[SHAPE], 0) : 1;
        to->columns = NUMBER(got[SHAPE], dims - 1);
        to->stride = dims == 2 ? NUMBER(got[STRIDE], 0) : to->columns;
        right = (to->columns <= 1 || NUMBER(got[STRIDE], dims - 1) == 1) &&
                (to->rows <= 1 || to->stride >= to->columns) &&
                (!whole || to->rows <= 1 || to->stride == to->columns) &&
                (rows == ANY || to->rows == rows) &&
                (columns == ANY || to->columns == columns);
    }
    for (int i = DTYPE; i < COUNT; i++) Py_XDECREF(got[i]);
    if (!right && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "expected %lld x %lld entries (-1: any number) of %S "
                     "side by side on the CPU", (long long)rows, (long long)columns,
                     known[dtype]);
    return right;
}

/* The address of a tensor that is there altogether, or NULL with an exception. */
static void *whole(PyObject *x, int dtype, int64_t rows, int64_t columns) {
    static char nothing[64]; /* PyTorch has no address for an empty tensor */
    Matrix found;
    if (!take(x, dtype, rows, columns, 1, &found)) return NULL;
    return found.at ? found.at : nothing;
}

static int refused(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return 0;
}

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

/* As many threads as PyTorch uses. */
static int all_threads(void) {
    PyObject *count = PyObject_CallObject(known[THREADS], NULL);
    const long found = count ? PyLong_AsLong(count) : 1;
    Py_XDECREF(count);
    return found < 1 ? 1 : found < MAX_THREADS ? (int)found : MAX_THREADS;
}

/* Threads that are worth starting. */
static int useful(int64_t blocks) {
    const int threads = all_threads();
    return blocks < 1 ? 1 : blocks < threads ? (int)blocks : threads;
}

/* Other threads of Python may run meanwhile. */
#define FREELY(...)        \
    Py_BEGIN_ALLOW_THREADS \
    __VA_ARGS__;           \
    Py_END_ALLOW_THREADS

/* A draw is (key, level, scale). */
#define DRAW "(Kif)"
#define DRAW_OF(a) &(a).drop.key, &(a).drop.level, &(a).drop.scale

static PyObject *py_widest(PyObject *self, PyObject *lanes) {
    (void)self;
    return PyLong_FromLong(widest((int)PyLong_AsLong(lanes)));
}

/* mask(x, out, first, draw): out = drop(X). */
static PyObject *py_mask(PyObject *self, PyObject *args) {
    PyObject *x, *out;
    Matrix given;
    long long first;
    Mask a;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOL" DRAW, &x, &out, &first, DRAW_OF(a)) ||
        !take(x, FLOAT32, ANY, ANY, 1, &given) ||
        !(a.out = whole(out, FLOAT32, given.rows, given.columns)))
        return NULL;
    a.x = given.at, a.rows = given.rows, a.width = given.columns, a.first = first;
    const int64_t blocks = blocks_of(a.rows);
    const int threads = useful(blocks);
    FREELY(run(loops->mask, &a, blocks, threads))
    Py_RETURN_NONE;
}

/* Columns are shared by several threads in whole cache lines. */
static int64_t chunk_of(int64_t width) {
    return all_threads() > 1 ? 16 : width < 1 ? 1 : width;
}

/* product(crow, col, value, n_cols, z, bias, out, transposed, draw): out = drop(A) Z + b,
 * or out += drop(A)ᵀ Z. The columns are right: whoever makes a CSR sees to it. */
static PyObject *py_product(PyObject *self, PyObject *args) {
    PyObject *crow, *col, *value, *z, *bias, *out;
    Matrix pointers, columns, given;
    long long n_cols;
    Sparse a;
    int transposed;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOLOOOp" DRAW, &crow, &col, &value, &n_cols, &z, &bias,
                          &out, &transposed, DRAW_OF(a)) ||
        !take(crow, INT32, 1, ANY, 1, &pointers) ||
        !take(col, INT32, 1, ANY, 1, &columns) ||
        !(a.value = whole(value, FLOAT32, 1, columns.columns)))
        return NULL;
    a.crow = pointers.at, a.col = columns.at, a.rows = pointers.columns - 1;
    if (a.rows < 0 || a.crow[0] || a.crow[a.rows] > columns.columns)
        return refused("row pointers beyond the entries"), NULL;
    const int64_t into = transposed ? n_cols : a.rows, from = transposed ? a.rows : n_cols;
    if (!take(z, FLOAT32, from, ANY, 1, &given) ||
        !(a.out = whole(out, FLOAT32, into, given.columns)))
        return NULL;
    a.z = given.at, a.width = given.columns, a.bias = NULL;
    if (bias != Py_None && !(a.bias = whole(bias, FLOAT32, 1, a.width))) return NULL;
    a.chunk = chunk_of(a.width);
    const int64_t blocks =
        transposed ? (a.width + a.chunk - 1) / a.chunk : blocks_of(a.rows);
    const int threads = useful(blocks);
    a.scratch = NULL, a.scratch_size = a.most = 0;
    if (a.drop.level < 256) {
        for (int64_t first = 0; first < a.rows; first += BLOCK_ROWS) {
            int64_t end = first + BLOCK_ROWS < a.rows ? first + BLOCK_ROWS : a.rows;
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

/* What hidden and its gradients share; `other`: the output, or its gradient. */
static const float *hidden_task(Hidden *a, PyObject *z, PyObject *left, PyObject *bias,
                                PyObject *weight, PyObject *other, float **other_at) {
    Matrix rows, given, factor;
    if (!take(other, FLOAT32, ANY, ANY, 0, &rows)) return NULL;
    if (!take(z, FLOAT32, left == Py_None ? rows.rows : ANY, ANY, 0, &given)) return NULL;
    *other_at = rows.at, a->out_stride = rows.stride;
    a->rows = rows.rows, a->c = (int)rows.columns;
    a->width = given.columns, a->z_stride = given.stride;
    if (left == Py_None)
        a->z = given.at;
    else if (take(left, FLOAT32, rows.rows, given.rows, 1, &factor) &&
             (a->right = whole(z, FLOAT32, ANY, ANY)))
        a->left = factor.at, a->rank = (int)given.rows;
    else
        return NULL;
    if (!(a->bias = whole(bias, FLOAT32, 1, a->width))) return NULL;
    return whole(weight, FLOAT32, a->width, a->c);
}

/* hidden(z, left, bias, w, out, draw): out = drop(ReLU(Z + b)) W. Where `left` is given,
 * z is the R of Z = L R. Rows of z and of out may be apart. */
static PyObject *py_hidden(PyObject *self, PyObject *args) {
    PyObject *z, *left, *bias, *weight, *out;
    const float *w;
    Hidden a;
    (void)self;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "OOOOO" DRAW, &z, &left, &bias, &weight, &out,
                          DRAW_OF(a)) ||
        !(w = hidden_task(&a, z, left, bias, weight, out, &a.out)))
        return NULL;
    const int64_t blocks = blocks_of(a.rows);
    const int threads = useful(blocks);
    const size_t of_weight = (size_t)(a.width * (a.c + 7)), of_rows = HIDDEN_ROWS * a.width;
    float *scratch = calloc(of_weight + threads * of_rows + 1, 4);
    if (!scratch) return PyErr_NoMemory();
    a.weight = scratch, a.scratch = scratch + of_weight;
    FREELY(in_eights(w, scratch, a.width, a.c); run(loops->hidden, &a, blocks, threads))
    free(scratch);
    Py_RETURN_NONE;
}

/* hidden_back(grad, z, left, grad_z, bias, w, sums, draw): the gradients of `hidden`.
 * That of Z goes to grad_z, which may be z, or nowhere; those of Wᵀ, b and R (together
 * (k + 1 + r)×h) are added to `sums`. */
static PyObject *py_hidden_back(PyObject *self, PyObject *args) {
    PyObject *grad, *z, *left, *grad_z, *bias, *weight, *sums;
    Matrix to;
    float *grad_at, *total;
    const float *w;
    Hidden a;
    (void)self;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "OOOOOOO" DRAW, &grad, &z, &left, &grad_z, &bias, &weight,
                          &sums, DRAW_OF(a)) ||
        !(w = hidden_task(&a, z, left, bias, weight, grad, &grad_at)) ||
        !(total = whole(sums, FLOAT32, a.c + 1 + a.rank, a.width)))
        return NULL;
    a.grad = grad_at;
    if (grad_z != Py_None) {
        if (!take(grad_z, FLOAT32, a.rows, a.width, 0, &to)) return NULL;
        if (to.stride != a.z_stride) return refused("grad_z has other strides"), NULL;
        a.grad_z = to.at;
    }
    const int64_t blocks = blocks_of(a.rows), count = (a.c + 1 + a.rank) * a.width;
    const int threads = useful(blocks);
    const size_t of_weight = (size_t)(a.width * a.c);
    const size_t of_rows = (size_t)(threads * HIDDEN_ROWS * a.width);
    float *scratch = calloc(of_weight + of_rows + (size_t)(blocks * count) + 1, 4);
    if (!scratch) return PyErr_NoMemory();
    a.weight = scratch, a.scratch = scratch + of_weight;
    a.sums = a.scratch + of_rows;
    for (int64_t j = 0; j < a.width; j++)
        for (int k = 0; k < a.c; k++) scratch[k * a.width + j] = w[j * a.c + k];
    FREELY(run(loops->hidden_back, &a, blocks, threads);
           for (int64_t i = 0; i < blocks * count; i++) total[i % count] += a.sums[i])
    free(scratch);
    Py_RETURN_NONE;
}

/* two_views(wide, grad, w, b, target, each, kind, sums, tau, eta, contrast, entropy):
 * eq. 12 for [H̄ H̃]; the gradient of the views goes to `grad`, those of W and b (together
 * (c + 1)×c) are added to `sums`. */
static PyObject *py_two_views(PyObject *self, PyObject *args) {
    PyObject *wide, *grad, *weight, *bias, *target, *each, *kind, *sums;
    Matrix given;
    double *total, loss = 0.0;
    TwoViews a;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOOffff", &wide, &grad, &weight, &bias, &target,
                          &each, &kind, &sums, &a.tau, &a.eta, &a.contrast, &a.entropy) ||
        !take(wide, FLOAT32, ANY, ANY, 1, &given))
        return NULL;
    const int64_t n = a.rows = given.rows, c = given.columns / 2;
    a.wide = given.at, a.c = (int)c;
    if (c > MAX_CLASSES || given.columns % 2) return refused("too many classes"), NULL;
    if (!(a.grad = whole(grad, FLOAT32, n, 2 * c)) ||
        !(a.weight = whole(weight, FLOAT32, c, c)) ||
        !(a.bias = whole(bias, FLOAT32, 1, c)) ||
        !(a.target = whole(target, INT64, 1, n)) ||
        !(a.each = whole(each, FLOAT32, 1, n)) || !(a.kind = whole(kind, INT8, 1, n)) ||
        !(total = whole(sums, FLOAT64, c + 1, c)))
        return NULL;
    for (int64_t i = 0; i < n; i++)
        if (a.target[i] < 0 || a.target[i] >= c || a.kind[i] < 0 || a.kind[i] > 2)
            return refused("a class beyond those of the views"), NULL;
    const int64_t blocks = blocks_of(n), count = LOSS_SUMS(c);
    const int threads = useful(blocks);
    const size_t of_threads = (size_t)(threads * count * 4 * loops->lanes);
    const size_t of_blocks = (size_t)(blocks * count) * sizeof(double);
    char *scratch = calloc(of_threads + of_blocks + 4 * (size_t)n + 64, 1);
    if (!scratch) return PyErr_NoMemory();
    char *aligned = (char *)(((uintptr_t)scratch + 63) / 64 * 64); /* for vectors */
    a.scratch = aligned, a.sums = (double *)(aligned + of_threads);
    a.d = (float *)(aligned + of_threads + of_blocks);
    FREELY(run(loops->similarity, &a, blocks, threads); loss = loops->contrast(&a);
           run(loops->two_views, &a, blocks, threads);
           for (int64_t i = 0; i < blocks * count; i++)
               *(i % count < count - 1 ? total + i % count : &loss) += a.sums[i])
    free(scratch);
    return PyFloat_FromDouble(loss);
}

static PyMethodDef methods[] = {
    {"widest", py_widest, METH_O, NULL},
    {"mask", py_mask, METH_VARARGS, NULL},
    {"product", py_product, METH_VARARGS, NULL},
    {"hidden", py_hidden, METH_VARARGS, NULL},
    {"hidden_back", py_hidden_back, METH_VARARGS, NULL},
    {"two_views", py_two_views, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_compiled", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void) {
    PyObject *torch = PyImport_ImportModule("torch");
    if (!torch) return NULL;
    for (int i = 0; i < COUNT; i++) {
        known[i] = i < DTYPE ? PyObject_GetAttrString(torch, words[i])
                             : PyUnicode_InternFromString(words[i]);
        if (!known[i]) return NULL;
    }
    widest(16);
    return PyModule_Create(&module);
}
