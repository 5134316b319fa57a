/* The module elugcn.compiled._loops; addresses are numbers, which __init__.py checks. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "loops.h"

typedef unsigned long long Address;
#define AT(type, address) ((type *)(uintptr_t)(address))

static const Loops *loops = &loops_of_any;

/* Take the loops for registers of at most so many bits; how many they now have. */
static int use(int bits) {
    loops = &loops_of_any;
#ifdef HAS_WIDER
    __builtin_cpu_init();
    if (bits < 256 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 128;
    loops = &loops_of_256;
    if (bits < 512 || !__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return 256;
    loops = &loops_of_512;
    return 512;
#else
    (void)bits;
    return 128;
#endif
}

static PyObject *py_use(PyObject *self, PyObject *args) {
    int bits;
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &bits)) return NULL;
    return PyLong_FromLong(use(bits));
}

/* Other threads of Python may run meanwhile. */
#define FREELY(...)         \
    Py_BEGIN_ALLOW_THREADS  \
    __VA_ARGS__;            \
    Py_END_ALLOW_THREADS

static PyObject *py_draw_words(PyObject *self, PyObject *args) {
    Address state, out;
    long long count;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKL", &state, &out, &count)) return NULL;
    FREELY(loops->draw_words(AT(void, state), AT(uint64_t, out), count))
    Py_RETURN_NONE;
}

static PyObject *py_sparse_product(PyObject *self, PyObject *args) {
    Address crow, col, value, z, out;
    Sparse a;
    long long rows, width;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKLL", &crow, &col, &value, &z, &out, &rows, &width))
        return NULL;
    a.crow = AT(int32_t, crow), a.col = AT(int32_t, col), a.value = AT(float, value);
    a.z = AT(float, z), a.out = AT(float, out), a.rows = rows, a.width = width;
    FREELY(loops->sparse_product(&a))
    Py_RETURN_NONE;
}

static PyObject *py_activated_product(PyObject *self, PyObject *args) {
    Address z, bias, drawn, h, weight, out;
    Hidden a;
    long long rows, width, stride;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKiKKKLLLi", &z, &bias, &drawn, &a.level, &h, &weight,
                          &out, &rows, &width, &stride, &a.c))
        return NULL;
    a.z = AT(float, z), a.bias = AT(float, bias), a.drawn = AT(uint8_t, drawn);
    a.h = AT(float, h), a.weight = AT(float, weight), a.out = AT(float, out);
    a.rows = rows, a.width = width, a.stride = stride;
    FREELY(loops->activated_product(&a))
    Py_RETURN_NONE;
}

static PyObject *py_activated_backward(PyObject *self, PyObject *args) {
    Address grad, weight, h, out, sums, bias;
    Back a;
    long long rows, width, stride;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKKLLLi", &grad, &weight, &h, &out, &sums, &bias,
                          &rows, &width, &stride, &a.c))
        return NULL;
    a.grad = AT(float, grad), a.weight = AT(float, weight), a.h = AT(float, h);
    a.out = AT(float, out), a.sums = AT(float, sums), a.bias = AT(float, bias);
    a.rows = rows, a.width = width, a.stride = stride;
    FREELY(loops->activated_backward(&a))
    Py_RETURN_NONE;
}

static PyObject *py_keep(PyObject *self, PyObject *args) {
    Address x, drawn, out;
    int level;
    long long count;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKiKL", &x, &drawn, &level, &out, &count)) return NULL;
    FREELY(loops->keep(AT(float, x), AT(uint8_t, drawn), level, AT(float, out), count))
    Py_RETURN_NONE;
}

static PyObject *py_ones(PyObject *self, PyObject *args) {
    Address drawn, never, out;
    int level;
    long long count;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKiKL", &drawn, &never, &level, &out, &count))
        return NULL;
    FREELY(loops->ones(AT(uint8_t, drawn), AT(uint8_t, never), level, AT(float, out), count))
    Py_RETURN_NONE;
}

static PyObject *py_two_views(PyObject *self, PyObject *args) {
    Address wide, grad, weight, bias, sums, target, each, kind, d, room;
    long long n;
    int c;
    Scales s;
    double loss;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKKKKKLiffffK", &wide, &grad, &weight, &bias, &sums,
                          &target, &each, &kind, &d, &n, &c, &s.tau, &s.eta, &s.contrast,
                          &s.entropy, &room))
        return NULL;
    FREELY(loss = loops->two_views(AT(float, wide), AT(float, grad), AT(float, weight),
                            AT(float, bias), AT(double, sums), AT(int64_t, target),
                            AT(float, each), AT(int8_t, kind), AT(float, d), n, c, s,
                            AT(void, room)))
    return PyFloat_FromDouble(loss);
}

static PyMethodDef methods[] = {
    {"use", py_use, METH_VARARGS, NULL},
    {"draw_words", py_draw_words, METH_VARARGS, NULL},
    {"sparse_product", py_sparse_product, METH_VARARGS, NULL},
    {"activated_product", py_activated_product, METH_VARARGS, NULL},
    {"activated_backward", py_activated_backward, METH_VARARGS, NULL},
    {"keep", py_keep, METH_VARARGS, NULL},
    {"ones", py_ones, METH_VARARGS, NULL},
    {"two_views", py_two_views, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_loops", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void) {
    use(512);
    return PyModule_Create(&module);
}
