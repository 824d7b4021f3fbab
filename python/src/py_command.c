/* py_command.c - the command `lowbit` as a function, for the entry point of the
 * package: the process is expected to exit with its result. */
#include "py_lowbit.h"

#include <stdlib.h>

#include "start/command.h"

static PyObject *command(PyObject *module, PyObject *list)
{
    (void)module;
    const Py_ssize_t n = PyList_Check(list) ? PyList_Size(list) : -1;
    char **argv = n < 0 ? NULL : calloc((size_t)n + 1, sizeof *argv);
    PyObject *kept = n < 0 ? NULL : PyList_New(0);
    if (n < 0) PyErr_SetString(PyExc_TypeError, "a list of words");
    bool ok = argv && kept;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *bytes = NULL;
        ok = PyUnicode_FSConverter(PyList_GetItem(list, i), &bytes) &&
             !PyList_Append(kept, bytes);
        if (ok) argv[i] = PyBytes_AsString(bytes);
        Py_XDECREF(bytes);
    }
    int result = 0;
    if (ok) {
        Py_BEGIN_ALLOW_THREADS
        result = lowbit_command((int)n, argv, NULL);
        Py_END_ALLOW_THREADS
    }
    free(argv);
    Py_XDECREF(kept);
    return ok ? PyLong_FromLong(result) : NULL;
}

PyMethodDef py_command_methods[] = {
    {"_command", command, METH_O, NULL},
    {0},
};
