/* py_operators.c - Python's operators on arrays. */
#include "py_compose.h"

typedef lb_array *py_binary(lb_ctx *cx, lb_array *x, lb_array *y);
typedef lb_array *py_unary(lb_ctx *cx, lb_array *x);

/* One operand is an Array. NotImplemented if the other one cannot be converted,
 * so that its own operator is tried. */
static PyObject *binary(PyObject *x, PyObject *y, py_binary *fn)
{
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *a = py_operand(cx, x, PY_TRIED);
    lb_array *b = a ? py_operand(cx, y, PY_TRIED) : NULL;
    if (!a || !b) {
        if (PyErr_Occurred() || lb_error_status(cx)) return py_leave_failed(cx);
        py_leave(cx);
        Py_RETURN_NOTIMPLEMENTED;
    }
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = fn(cx, a, b);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static PyObject *unary(PyObject *x, py_unary *fn)
{
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = fn(cx, py_array_of(x));
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

#define BINARY(name, fn)                                                       \
    static PyObject *op_##name(PyObject *x, PyObject *y)                       \
    {                                                                          \
        return binary(x, y, fn);                                               \
    }
#define UNARY(name, fn)                                                        \
    static PyObject *op_##name(PyObject *x)                                    \
    {                                                                          \
        return unary(x, fn);                                                   \
    }
BINARY(add, lb_add)
BINARY(subtract, lb_sub)
BINARY(multiply, lb_mul)
BINARY(true_divide, py_true_divide)
BINARY(floor_divide, py_floor_divide)
BINARY(remainder, py_remainder)
BINARY(matmul, lb_matmul)
BINARY(and, lb_and)
BINARY(or, lb_or)
BINARY(xor, lb_xor)
BINARY(lshift, lb_shift_left)
BINARY(rshift, py_shift_right)
UNARY(negative, lb_neg)
UNARY(absolute, lb_abs)
UNARY(invert, lb_not)

static PyObject *op_positive(PyObject *x)
{
    return Py_NewRef(x);
}

/* x ** 2 and the like by multiplication, exact for all elements. */
static PyObject *op_power(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (!py_is_array(x) || !PyLong_CheckExact(y)) return binary(x, y, lb_pow);
    int64_t n;
    if (!py_int_from(y, &n)) return NULL;
    if (n < 0 ? !py_dtype_is_float(lb_dtype_of(py_array_of(x))) : n > 64)
        return binary(x, y, lb_pow);
    lb_ctx *cx = n < INT32_MIN ? NULL : py_enter();
    if (!cx) return n < INT32_MIN ? binary(x, y, lb_pow) : NULL;
    lb_array *r;
    Py_BEGIN_ALLOW_THREADS
    r = lb_integer_pow(cx, py_array_of(x), (int)n);
    Py_END_ALLOW_THREADS
    return py_leave_with(cx, r);
}

static PyObject *op_compare(PyObject *x, PyObject *y, int op)
{
    static py_binary *const fn[] = {
        [Py_LT] = lb_lt, [Py_LE] = lb_le, [Py_EQ] = lb_eq,
        [Py_NE] = lb_ne, [Py_GT] = lb_gt, [Py_GE] = lb_ge,
    };
    return binary(x, y, fn[op]);
}

/* ---- one element --------------------------------------------------------- */

static bool is_one(PyObject *x, const char *what)
{
    const int64_t n = lb_size(py_array_of(x));
    if (n == 1) return true;
    PyErr_Format(PyExc_ValueError,
                 "%s of an array of %lld elements, not one (lowbit.any and "
                 "lowbit.all reduce it to one)",
                 what, (long long)n);
    return false;
}

/* A Python bool, int or float. */
static PyObject *item_of(PyObject *x, const char *what)
{
    lb_array *a = py_array_of(x);
    if (!is_one(x, what)) return NULL;
    lb_ctx *cx = py_enter();
    if (!cx) return NULL;
    const lb_dtype t = lb_dtype_of(a);
    const bool is_float = py_dtype_is_float(t);
    const double f = is_float ? lb_item(cx, a) : 0;
    const int64_t i = is_float ? 0 : lb_item_int(cx, a);
    if (lb_error_status(cx)) return py_leave_failed(cx);
    py_leave(cx);
    if (is_float) return PyFloat_FromDouble(f);
    if (t == LB_BOOL) return PyBool_FromLong(i != 0);
    return t == LB_U64 ? PyLong_FromUnsignedLongLong((unsigned long long)i)
                       : PyLong_FromLongLong(i);
}

static int op_bool(PyObject *x)
{
    PyObject *o = item_of(x, "the truth value");
    const int truth = o ? PyObject_IsTrue(o) : -1;
    Py_XDECREF(o);
    return truth;
}

static PyObject *op_int(PyObject *x)
{
    PyObject *o = item_of(x, "the integer value");
    PyObject *i = o ? PyNumber_Long(o) : NULL;
    Py_XDECREF(o);
    return i;
}

static PyObject *op_float(PyObject *x)
{
    PyObject *o = item_of(x, "the float value");
    PyObject *f = o ? PyNumber_Float(o) : NULL;
    Py_XDECREF(o);
    return f;
}

static PyObject *op_index(PyObject *x)
{
    const lb_dtype t = lb_dtype_of(py_array_of(x));
    if (py_dtype_is_signed(t) || py_dtype_is_unsigned(t)) return op_int(x);
    PyErr_Format(PyExc_TypeError, "%s arrays are not indices",
                 py_dtype_name(t));
    return NULL;
}

static PyObject *array_item(PyObject *x, PyObject *unused)
{
    (void)unused;
    return item_of(x, "the item");
}

static PyObject *array_complex(PyObject *x, PyObject *unused)
{
    (void)unused;
    PyObject *f = op_float(x);
    const double re = f ? PyFloat_AsDouble(f) : 0;
    Py_XDECREF(f);
    return f ? PyComplex_FromDoubles(re, 0) : NULL;
}

static Py_ssize_t op_length(PyObject *x)
{
    lb_array *a = py_array_of(x);
    if (lb_rank(a) > 0) return (Py_ssize_t)lb_dim(a, 0);
    PyErr_SetString(PyExc_TypeError, "len() of a 0-dimensional array");
    return -1;
}

PyMethodDef py_operator_methods[] = {
    {"item", array_item, METH_NOARGS,
     "item($self, /)\n--\n\nThe only element, as a Python number."},
    {"__complex__", array_complex, METH_NOARGS, NULL},
    {0},
};

PyType_Slot py_operator_slots[] = {
    {Py_nb_add, op_add},
    {Py_nb_subtract, op_subtract},
    {Py_nb_multiply, op_multiply},
    {Py_nb_true_divide, op_true_divide},
    {Py_nb_floor_divide, op_floor_divide},
    {Py_nb_remainder, op_remainder},
    {Py_nb_power, op_power},
    {Py_nb_matrix_multiply, op_matmul},
    {Py_nb_and, op_and},
    {Py_nb_or, op_or},
    {Py_nb_xor, op_xor},
    {Py_nb_lshift, op_lshift},
    {Py_nb_rshift, op_rshift},
    {Py_nb_negative, op_negative},
    {Py_nb_positive, op_positive},
    {Py_nb_absolute, op_absolute},
    {Py_nb_invert, op_invert},
    {Py_nb_bool, op_bool},
    {Py_nb_int, op_int},
    {Py_nb_float, op_float},
    {Py_nb_index, op_index},
    {Py_tp_richcompare, op_compare},
    {Py_mp_length, op_length},
    {Py_sq_length, op_length},
    {0, NULL},
};
