/* py_errors.c - an exception class for each status of the library.
 *
 * All derive from lowbit.Error, and from the class of Python that programs
 * already catch for such an error.
 */
#include "py_lowbit.h"

enum { N_STATUS = LB_E_CANCELLED + 1 };
static PyObject *classes[N_STATUS]; /* [0]: Error */

typedef struct py_error_row {
    lb_status status;
    const char *name;
    const char *python; /* the second base class */
    const char *doc;
} py_error_row;

static const py_error_row rows[] = {
    {LB_E_NOMEM, "OutOfMemoryError", "MemoryError", "Out of memory."},
    {LB_E_NULL, "NullError", "TypeError", "An operand is missing."},
    {LB_E_SHAPE, "ShapeError", "ValueError", "Incompatible shapes."},
    {LB_E_DTYPE, "DtypeError", "TypeError", "Not supported for this dtype."},
    {LB_E_AXIS, "AxisError", "IndexError", "Axis out of range or repeated."},
    {LB_E_ARG, "ArgumentError", "ValueError", "Any other invalid argument."},
    {LB_E_SIZE, "SizeError", "OverflowError", "Too large to count."},
    {LB_E_DENIED, "DeniedError", "RuntimeError",
     "Forbidden by config(dense=\"deny\") or strict=True."},
    {LB_E_UNSUPPORTED, "UnsupportedError", "NotImplementedError",
     "Known, but not available."},
    {LB_E_FILE, "FileError", "OSError",
     "The system cannot open, read or write a file."},
    {LB_E_CONTENT, "ContentError", "ValueError", "Invalid file content."},
    {LB_E_MESH, "MeshError", "RuntimeError", "Ranks cannot continue together."},
    {LB_E_CANCELLED, "CancelledError", "RuntimeError",
     "The caller stopped a job."},
};

static bool add(PyObject *module, lb_status at, const char *name,
                const char *doc, PyObject *bases)
{
    char full[64];
    PyOS_snprintf(full, sizeof full, "lowbit.%s", name);
    if (!classes[at])
        classes[at] = PyErr_NewExceptionWithDoc(full, doc, bases, NULL);
    return classes[at] && PyModule_AddObjectRef(module, name, classes[at]) == 0;
}

bool py_errors_add(PyObject *module)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    bool ok = builtins &&
              add(module, LB_OK, "Error",
                  "Base class of all exceptions of lowbit.", PyExc_Exception);
    for (size_t i = 0; ok && i < sizeof rows / sizeof *rows; i++) {
        const py_error_row *r = &rows[i];
        PyObject *python = PyObject_GetAttrString(builtins, r->python);
        PyObject *bases = python ? PyTuple_Pack(2, classes[0], python) : NULL;
        ok = bases && add(module, r->status, r->name, r->doc, bases);
        Py_XDECREF(python);
        Py_XDECREF(bases);
    }
    Py_XDECREF(builtins);
    return ok;
}

PyObject *py_error_class(lb_status status)
{
    const bool known = (int)status >= 0 && (int)status < N_STATUS;
    return known && classes[status] ? classes[status] : classes[0];
}

PyObject *py_raise(lb_ctx *cx)
{
    if (!PyErr_Occurred()) {
        if (lb_error_status(cx))
            PyErr_SetString(py_error_class(lb_error_status(cx)), lb_error(cx));
        else
            PyErr_SetString(PyExc_SystemError, "lowbit: no result, no error");
    }
    lb_clear(cx);
    return NULL;
}
