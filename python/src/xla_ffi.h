/* xla_ffi.h - the part of XLA's foreign-function interface that the handlers in
 * py_ffi.c use: the layout of its structs, version 0.1 of the ABI.
 *
 * The wheel is built without jaxlib, so these are declarations of our own, with
 * names of our own. python/tests/for_jax/test_jax_abi.py compares sizes and
 * offsets with the header of the installed jaxlib. Later minor versions append
 * members and functions; a handler that reports an older minor version is
 * accepted by newer runtimes.
 */
#ifndef XLA_FFI_H
#define XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { FFI_MAJOR = 0, FFI_MINOR = 1 };

/* Every struct begins with these two members. */
typedef struct ffi_extension {
    size_t struct_size;
    int type;
    struct ffi_extension *next;
} ffi_extension;

typedef struct ffi_version {
    size_t struct_size;
    ffi_extension *extension;
    int major, minor;
} ffi_version;

/* The query that a handler answers when it is registered. */
enum { FFI_EXTENSION_METADATA = 1 };

typedef struct ffi_metadata {
    size_t struct_size;
    ffi_version version;
    uint32_t traits;
} ffi_metadata;

typedef struct ffi_metadata_extension {
    ffi_extension base;
    ffi_metadata *metadata;
} ffi_metadata_extension;

/* Created and owned by XLA. */
typedef struct ffi_error ffi_error;

enum {
    FFI_INVALID_ARGUMENT = 3,
    FFI_RESOURCE_EXHAUSTED = 8,
    FFI_INTERNAL = 13
};

typedef struct ffi_error_args {
    size_t struct_size;
    ffi_extension *extension;
    const char *message; /* copied */
    int code;
} ffi_error_args;

/* The first function of the table; those that follow are not used. */
typedef struct ffi_api {
    size_t struct_size;
    ffi_extension *extension;
    ffi_version version;
    const void *internal;
    ffi_error *(*error_create)(ffi_error_args *);
} ffi_api;

enum {
    FFI_PRED = 1,
    FFI_S8 = 2,
    FFI_S16 = 3,
    FFI_S32 = 4,
    FFI_S64 = 5,
    FFI_U8 = 6,
    FFI_U16 = 7,
    FFI_U32 = 8,
    FFI_U64 = 9,
    FFI_F16 = 10,
    FFI_F32 = 11,
    FFI_F64 = 12,
    FFI_BF16 = 16
};

/* Row-major, densely packed. */
typedef struct ffi_buffer {
    size_t struct_size;
    ffi_extension *extension;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} ffi_buffer;

/* Operands, and results in memory that XLA has allocated. */
typedef struct ffi_buffers {
    size_t struct_size;
    ffi_extension *extension;
    int64_t size;
    int *types;
    void **item; /* to ffi_buffer if the type is FFI_BUFFER */
} ffi_buffers;

enum { FFI_BUFFER = 1 };

typedef struct ffi_span {
    const char *ptr;
    size_t len;
} ffi_span;

typedef struct ffi_array {
    int dtype;
    size_t size;
    void *data;
} ffi_array;

enum { FFI_ATTR_ARRAY = 1, FFI_ATTR_STRING = 4 };

typedef struct ffi_attrs {
    size_t struct_size;
    ffi_extension *extension;
    int64_t size;
    int *types;
    ffi_span **names; /* sorted */
    void **item;      /* to ffi_array or ffi_span */
} ffi_attrs;

typedef struct ffi_frame {
    size_t struct_size;
    ffi_extension *extension;
    const ffi_api *api;
    void *context;
    int stage;
    ffi_buffers args;
    ffi_buffers rets;
    ffi_attrs attrs;
} ffi_frame;

typedef ffi_error *ffi_handler(ffi_frame *);

#endif
