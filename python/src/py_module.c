/* py_module.c - the extension module lowbit._lowbit. */
#include "py_lowbit.h"

static PyMethodDef *const tables[] = {
    py_call_methods,       py_special_methods, py_creation_methods,
    py_quantize_methods,   py_grad_methods,    py_nn_methods,
    py_context_methods,    py_ffi_methods,
#ifdef PY_WITH_IO
    py_save_methods,       py_job_methods,     py_command_methods,
    py_descriptor_methods,
#endif
};

/* Types and exceptions are shared by all functions of the process: another
 * interpreter would need its own ones. */
static bool is_only_interpreter(void)
{
    static int64_t first = -1;
    const int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (first < 0) first = id;
    if (id == first) return true;
    PyErr_SetString(PyExc_ImportError,
                    "lowbit cannot be used by several interpreters of a "
                    "process");
    return false;
}

static int module_exec(PyObject *m)
{
    if (!is_only_interpreter() || !py_contexts_init() || !py_calls_init() ||
        !py_errors_add(m) || !py_dtypes_add(m) || !py_array_add(m) ||
        !py_training_add(m) || !py_programs_add(m))
        return -1;
#ifdef PY_WITH_IO
    if (!py_files_add(m)) return -1;
#endif
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(m, tables[i])) return -1;
    return PyModule_AddStringConstant(m, "__version__", lb_version());
}

/* With a GIL that can be disabled, from Python 3.13 on, whose limited API of
 * 3.11 does not know this slot. */
enum { MOD_GIL = 4 };
static void *const gil_not_used = (void *)1;

PyMODINIT_FUNC PyInit__lowbit(void);
PyMODINIT_FUNC PyInit__lowbit(void)
{
    static PyModuleDef_Slot slots[] = {
        {Py_mod_exec, module_exec}, {0, NULL}, {0, NULL}};
    static PyModuleDef def = {PyModuleDef_HEAD_INIT, .m_name = "lowbit._lowbit",
                              .m_slots = slots};
    if (Py_Version >= 0x030D0000)
        slots[1] = (PyModuleDef_Slot){MOD_GIL, gil_not_used};
    return PyModuleDef_Init(&def);
}
