/* The module elugcn.engine._compiled: reads tensors, checks them, and runs the loops. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "loops.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 256
#define ANY (-1) /* a size that is not known yet */
#define UNKNOWN {1, ANY, ANY, ANY, ANY, ANY} /* sizes, ONE first */
#define NUMBER(tuple, i) PyLong_AsLongLong(PyTuple_GetItem(tuple, i))

static const Loops *loops = &loops_of_any;

/* Attributes of torch, and the names of a tensor's. */
enum { FLOAT32, FLOAT64, INT8, INT32, INT64, THREADS,
       DTYPE, IS_CPU, SHAPE, STRIDE, DATA_PTR, COUNT };
static const char *const words[] = {"float32", "float64", "int8", "int32", "int64",
                                    "get_num_threads", "dtype", "is_cpu", "shape",
                                    "stride", "data_ptr"};
static PyObject *known[COUNT];

/* A tensor that is expected: its name, dtype, and which of the sizes of a call its rows
 * and columns are. A vector is one row. */
enum { ONE, N, M, H, C, R, SIZES };
enum { APART = 1, OPTIONAL = 2 }; /* there may be room between rows; may be None */
typedef struct {
    const char *name;
    int dtype, rows, columns, flags;
} Expected;

/* What is found: rows are `stride` entries apart. */
typedef struct {
    void *at;
    int64_t stride;
} Found;

/* Read what PyTorch says of a tensor. Everything that C is told goes through here.
 *
 * False, with an exception, unless it is on the CPU, has its dtype and sizes, and the
 * entries of a row stand side by side. A size that is not known yet is now. */
static int take(PyObject *x, const Expected *want, int64_t *sizes, Found *to) {
    static char nothing[64]; /* PyTorch has no address for an empty tensor */
    PyObject *got[COUNT] = {NULL};
    int right = 1;
    for (int i = DTYPE; i < COUNT && right; i++) {
        got[i] = i < STRIDE ? PyObject_GetAttr(x, known[i])
                            : PyObject_CallMethodObjArgs(x, known[i], NULL);
        right = got[i] && (i != DTYPE || got[i] == known[want->dtype]) &&
                (i != IS_CPU || got[i] == Py_True);
    }
    const Py_ssize_t dims = right ? PyTuple_Size(got[SHAPE]) : 0;
    right = dims == 1 || dims == 2;
    if (right) {
        const int64_t columns = NUMBER(got[SHAPE], dims - 1);
        const int64_t rows = dims == 2 ? NUMBER(got[SHAPE], 0) : 1;
        if (sizes[want->rows] == ANY) sizes[want->rows] = rows;
        if (sizes[want->columns] == ANY) sizes[want->columns] = columns;
        to->at = PyLong_AsVoidPtr(got[DATA_PTR]);
        to->at = to->at ? to->at : nothing;
        to->stride = dims == 2 ? NUMBER(got[STRIDE], 0) : columns;
        right = (columns <= 1 || NUMBER(got[STRIDE], dims - 1) == 1) &&
                (rows <= 1 || to->stride >= columns) &&
                ((want->flags & APART) || rows <= 1 || to->stride == columns) &&
                rows == sizes[want->rows] && columns == sizes[want->columns];
    }
    for (int i = DTYPE; i < COUNT; i++) Py_XDECREF(got[i]);
    if (!right && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s: expected %lld x %lld entries (-1: any number) "
                     "of %S side by side on the CPU", want->name,
                     (long long)sizes[want->rows], (long long)sizes[want->columns],
                     known[want->dtype]);
    return right;
}

/* The tensors of a call, None at NULL, and the numbers after them. */
static int read_all(PyObject *args, const Expected *want, int count, int64_t *sizes,
                    Found *to, const char *format, ...) {
    PyObject *rest = PyTuple_GetSlice(args, count, PyTuple_Size(args));
    va_list numbers;
    va_start(numbers, format);
    int right = rest && PyArg_VaParse(rest, format, numbers);
    va_end(numbers);
    Py_XDECREF(rest);
    for (int i = 0; i < count && right; i++) {
        PyObject *x = PyTuple_GetItem(args, i);
        to[i] = (Found){NULL, 0};
        if (!x || x != Py_None || !(want[i].flags & OPTIONAL))
            right = x && take(x, want + i, sizes, to + i);
    }
    return right;
}
#define READ(...) read_all(args, want, sizeof want / sizeof *want, sizes, to, __VA_ARGS__)

static void *refused(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
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
    pthread_t started[MAX_THREADS];
    int count = 0;
    while (count + 1 < threads && count + 1 < blocks &&
           !pthread_create(&started[count], NULL, work, &w))
        count++;
    work(&w);
    for (int i = 0; i < count; i++) pthread_join(started[i], NULL);
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
    return PyLong_FromLong(widest((int)PyLong_AsLong(lanes)));
}

/* mask(x, out, first, draw): out = drop(X). */
static PyObject *py_mask(PyObject *self, PyObject *args) {
    static const Expected want[] = {{"x", FLOAT32, N, M, 0}, {"out", FLOAT32, N, M, 0}};
    int64_t sizes[SIZES] = UNKNOWN;
    Found to[2];
    Mask a;
    long long first;
    if (!READ("L" DRAW, &first, DRAW_OF(a))) return NULL;
    a.x = to[0].at, a.out = to[1].at, a.rows = sizes[N], a.width = sizes[M];
    a.first = first;
    const int64_t blocks = blocks_of(a.rows);
    const int threads = useful(blocks);
    FREELY(run(loops->mask, &a, blocks, threads))
    Py_RETURN_NONE;
}

/* Columns are shared by several threads in whole cache lines. */
static int64_t chunk_of(int64_t width) {
    return all_threads() > 1 ? 16 : width < 1 ? 1 : width;
}

/* product(crow, col, value, z, bias, out, n_cols, transposed, draw): out = drop(A) Z + b,
 * or out += drop(A)ᵀ Z. The columns are right: whoever makes a CSR sees to it. */
static PyObject *py_product(PyObject *self, PyObject *args) {
    static const Expected want[] = {
        {"crow", INT32, ONE, R, 0},          {"col", INT32, ONE, C, 0},
        {"value", FLOAT32, ONE, C, 0},       {"z", FLOAT32, M, H, 0},
        {"bias", FLOAT32, ONE, H, OPTIONAL}, {"out", FLOAT32, N, H, 0}};
    int64_t sizes[SIZES] = UNKNOWN;
    Found to[6];
    long long n_cols;
    Sparse a;
    int transposed;
    if (!READ("Lp" DRAW, &n_cols, &transposed, DRAW_OF(a))) return NULL;
    a.crow = to[0].at, a.col = to[1].at, a.value = to[2].at;
    a.z = to[3].at, a.bias = to[4].at, a.out = to[5].at;
    a.rows = sizes[R] - 1, a.width = sizes[H];
    if (a.rows < 0 || a.crow[0] || a.crow[a.rows] > sizes[C])
        return refused("crow: expected no pointers beyond the entries");
    if (sizes[transposed ? M : N] != a.rows || sizes[transposed ? N : M] != n_cols)
        return refused("z, out: expected the rows and columns of the matrix");
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

/* What hidden and its gradients share: Z, or the factors L and R of it, and b. */
static int hidden_task(Hidden *a, const int64_t *sizes, Found z, Found left, Found bias) {
    if (left.at ? sizes[R] > 1 && z.stride != sizes[H] : sizes[R] != sizes[N])
        return refused("z: expected as many rows as there are outputs"), 0;
    a->rows = sizes[N], a->width = sizes[H], a->c = (int)sizes[C], a->bias = bias.at;
    a->z_stride = z.stride, a->left = left.at, a->rank = left.at ? (int)sizes[R] : 0;
    *(left.at ? &a->right : &a->z) = z.at;
    return 1;
}

/* hidden(z, left, bias, w, out, draw): out = drop(ReLU(Z + b)) W. Where `left` is given,
 * z is the R of Z = L R. Rows of z and of out may be apart. */
static PyObject *py_hidden(PyObject *self, PyObject *args) {
    static const Expected want[] = {
        {"z", FLOAT32, R, H, APART},   {"left", FLOAT32, N, R, OPTIONAL},
        {"bias", FLOAT32, ONE, H, 0},  {"w", FLOAT32, H, C, 0},
        {"out", FLOAT32, N, C, APART}};
    int64_t sizes[SIZES] = UNKNOWN;
    Found to[5];
    Hidden a;
    memset(&a, 0, sizeof a);
    if (!READ(DRAW, DRAW_OF(a)) || !hidden_task(&a, sizes, to[0], to[1], to[2]))
        return NULL;
    const float *w = to[3].at;
    a.out = to[4].at, a.out_stride = to[4].stride;
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
    static const Expected want[] = {
        {"grad", FLOAT32, N, C, APART},    {"z", FLOAT32, R, H, APART},
        {"left", FLOAT32, N, R, OPTIONAL}, {"grad_z", FLOAT32, N, H, APART | OPTIONAL},
        {"bias", FLOAT32, ONE, H, 0},      {"w", FLOAT32, H, C, 0},
        {"sums", FLOAT32, M, H, 0}};
    int64_t sizes[SIZES] = UNKNOWN;
    Found to[7];
    Hidden a;
    memset(&a, 0, sizeof a);
    if (!READ(DRAW, DRAW_OF(a)) || !hidden_task(&a, sizes, to[1], to[2], to[4]))
        return NULL;
    if (sizes[M] != a.c + 1 + a.rank) return refused("sums: expected other rows");
    if (to[3].at && to[3].stride != a.z_stride)
        return refused("grad_z: expected the strides of z");
    a.grad = to[0].at, a.out_stride = to[0].stride, a.grad_z = to[3].at;
    const float *w = to[5].at;
    float *total = to[6].at;
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
    static const Expected want[] = {
        {"wide", FLOAT32, N, M, 0},   {"grad", FLOAT32, N, M, 0},
        {"w", FLOAT32, C, C, 0},      {"b", FLOAT32, ONE, C, 0},
        {"target", INT64, ONE, N, 0}, {"each", FLOAT32, ONE, N, 0},
        {"kind", INT8, ONE, N, 0},    {"sums", FLOAT64, R, C, 0}};
    int64_t sizes[SIZES] = UNKNOWN;
    Found to[8];
    TwoViews a;
    double loss = 0.0;
    if (!READ("ffff", &a.tau, &a.eta, &a.contrast, &a.entropy)) return NULL;
    const int64_t n = sizes[N], c = sizes[C];
    if (c > MAX_CLASSES || sizes[M] != 2 * c || sizes[R] != c + 1)
        return refused("w, sums: expected the classes of the views");
    a.wide = to[0].at, a.grad = to[1].at, a.weight = to[2].at, a.bias = to[3].at;
    a.target = to[4].at, a.each = to[5].at, a.kind = to[6].at;
    a.rows = n, a.c = (int)c;
    double *total = to[7].at;
    for (int64_t i = 0; i < n; i++)
        if (a.target[i] < 0 || a.target[i] >= c || a.kind[i] < 0 || a.kind[i] > 2)
            return refused("a class beyond those of the views");
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
