/* py_dlpack.h - the structures of DLPack 1.0, which arrays of different
 * libraries are exchanged in. https://dmlc.github.io/dlpack
 */
#ifndef PY_DLPACK_H
#define PY_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1 };
enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_BOOL = 6,
};
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
} dl_type;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_type dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} dl_tensor;

/* The capsule "dltensor". */
typedef struct dl_managed {
    dl_tensor t;
    void *manager;
    void (*deleter)(struct dl_managed *);
} dl_managed;

/* The capsule "dltensor_versioned". */
typedef struct dl_versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_tensor t;
} dl_versioned;

#endif
