/* py_files.h - what the files of the extension about lowbit_io.h share. */
#ifndef PY_FILES_H
#define PY_FILES_H

#include "py_lowbit.h"

#include <string.h>

#include "lowbit_io.h"

/* The members of docs/json.md that every array has. */
PyObject *py_entry_dict(const lb_entry *e);

#endif
