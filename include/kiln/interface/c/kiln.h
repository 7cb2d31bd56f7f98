/* kiln in C: import a model, compile it for a target, run it. C11 and C++ need this header and libkiln.so.

   Conventions
   - Every function that can fail returns a kiln_status. On failure it changes none of its outputs, and kiln_last_error
     says on the same thread what went wrong.
   - Handles are opaque. Who gets one from a *_create, or through another `kiln_… **` parameter, gives it to the
     *_destroy of its type, once; that takes NULL too. Destroying one handle never invalidates another: an executable
     does not need the program any longer that it was compiled from, nor a tensor the workspace of its run.
   - Strings in are UTF-8 and end with 0; they are copied. A `const char*` out belongs to the handle it was asked of and
     lives as long. A `char*` out belongs to the caller, who gives it to kiln_string_destroy.
   - Handles that a function takes as const may be used by several threads at once; others by one thread at a time.
   - A NULL handle, output or string where one is needed is KILN_BAD_PARAM.

   ABI: functions are added, never changed or removed; each carries the symbol version it appeared with, KILN_0 first.
   Until kiln 1.0 the number after libkiln.so. rises when that has to be broken. */
#ifndef KILN_INTERFACE_C_KILN_H
#define KILN_INTERFACE_C_KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_API __attribute__((visibility("default")))

/* ---- Errors ---- */

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_BAD_PARAM = 1,      /* a call's argument breaks its contract */
  KILN_SHAPE_MISMATCH = 2, /* extents, rank or element type do not fit */
  KILN_UNSUPPORTED = 3,    /* valid, but outside what this importer, op or target covers */
  KILN_NOT_FOUND = 4,      /* a name or file that does not exist */
  KILN_MALFORMED = 5,      /* input data that breaks its own format */
  KILN_IO = 6,             /* the operating system refused a read or write */
  KILN_LIMIT = 7,          /* a stated size or nesting limit, or the machine's memory, is exceeded */
  KILN_CANCELED = 8,       /* kiln_run_options_cancel stopped the run */
  KILN_INTERNAL = 9        /* kiln, or an op of the caller's, broke its own invariant */
} kiln_status;

typedef enum kiln_error_part {
  KILN_ERROR_MESSAGE = 0,     /* without the places below */
  KILN_ERROR_OP = 1,          /* the op's name */
  KILN_ERROR_INSTRUCTION = 2, /* the instruction's name, as the model has it */
  KILN_ERROR_SOURCE = 3,      /* the file, or the model's node */
  KILN_ERROR_EXPECTED = 4,    /* the value that a rule asks for */
  KILN_ERROR_FOUND = 5        /* the value that stood there */
} kiln_error_part;

/* The whole message of this thread's last failed call; "" if none failed. Valid until the next failing call. */
KILN_API const char* kiln_last_error(void);
/* The status of that call; KILN_OK if none failed. */
KILN_API kiln_status kiln_last_error_status(void);
/* A part of that message; "" where it has none. */
KILN_API const char* kiln_last_error_part(kiln_error_part part);
/* The status in words: "not found". */
KILN_API const char* kiln_status_name(kiln_status status);

/* kiln's version: "0.1.0". */
KILN_API const char* kiln_version(void);
KILN_API void kiln_string_destroy(char* text);

/* ---- Element types, extents ---- */

typedef enum kiln_dtype {
  KILN_F64 = 0,
  KILN_F32 = 1,
  KILN_F16 = 2,
  KILN_BF16 = 3,
  KILN_I8 = 4,
  KILN_I16 = 5,
  KILN_I32 = 6,
  KILN_I64 = 7,
  KILN_U8 = 8,
  KILN_U16 = 9,
  KILN_U32 = 10,
  KILN_U64 = 11,
  KILN_BOOL = 12,
  KILN_F8E4M3FN = 13,
  KILN_F8E4M3FNUZ = 14,
  KILN_F8E5M2 = 15,
  KILN_F8E5M2FNUZ = 16,
  KILN_F8E8M0 = 17,
  KILN_F4E2M1 = 18, /* this and the next four: one element to a byte */
  KILN_I4 = 19,
  KILN_U4 = 20,
  KILN_I2 = 21,
  KILN_U2 = 22,
  KILN_STRING = 23, /* this and the next five: handles of objects */
  KILN_SEQUENCE = 24,
  KILN_OPTIONAL = 25,
  KILN_MAP = 26,
  KILN_C64 = 27,
  KILN_C128 = 28
} kiln_dtype;

/* The type's name: "f32"; NULL for a number that is none. */
KILN_API const char* kiln_dtype_name(kiln_dtype type);
/* Bytes of an element; 0 for a number that is none. */
KILN_API size_t kiln_dtype_size(kiln_dtype type);

/* Most dims that a tensor has. */
#define KILN_MAX_RANK 8

/* An extent: a number, or (where kiln_dim_is_symbolic) an expression over symbols such as "batch", whose values a run
   knows. Expressions are interned: equal ones are equal numbers, for the life of the process. */
typedef int64_t kiln_dim;

KILN_API int kiln_dim_is_symbolic(kiln_dim dim);
/* The least and greatest value over all values of the symbols; either may be NULL. */
KILN_API kiln_status kiln_dim_bounds(kiln_dim dim, int64_t* min, int64_t* max);
/* "12", "batch", "past + 1". */
KILN_API kiln_status kiln_dim_text(kiln_dim dim, char** text);
/* A symbol with a value in [min, max]; the same name and bounds give the same one. */
KILN_API kiln_status kiln_dim_symbol(const char* name, int64_t min, int64_t max, kiln_dim* dim);
/* a op b; op is one of + - * / % (the quotient rounds down). */
KILN_API kiln_status kiln_dim_combine(char op, kiln_dim a, kiln_dim b, kiln_dim* dim);

/* ---- Tensors ---- */

typedef struct kiln_tensor kiln_tensor;
/* A row-major tensor with memory of its own, which is not initialized. */
KILN_API kiln_status kiln_tensor_create(kiln_dtype type, size_t rank, const int64_t* lens, kiln_tensor** tensor);
/* A tensor over the caller's memory, without a copy. `strides` count elements: 0 repeats, a negative one reverses, NULL
   means row-major. `data` is where the element at index 0 is. `release`, which may be NULL, is called with `owner` when
   kiln needs the memory no longer; if this function fails it is not called. */
KILN_API kiln_status kiln_tensor_borrow(kiln_dtype type, size_t rank, const int64_t* lens, const int64_t* strides,
                                        void* data, void (*release)(void* owner), void* owner, kiln_tensor** tensor);
/* The first part of a row-major tensor, without a copy: `lens` says how much of each extent. Borrows its memory. An
   input whose output grows in place (the option "aliases") is the first part of its whole room. */
KILN_API kiln_status kiln_tensor_leading_part(const kiln_tensor* whole, size_t rank, const int64_t* lens,
                                              kiln_tensor** part);
/* A tensor of strings, row-major; `lengths` NULL: each ends with 0. */
KILN_API kiln_status kiln_tensor_create_strings(size_t rank, const int64_t* lens, const char* const* texts,
                                                const size_t* lengths, kiln_tensor** tensor);
KILN_API void kiln_tensor_destroy(kiln_tensor* tensor);

/* Type, rank, extents and strides; `lens` and `strides` have room for KILN_MAX_RANK. Each output may be NULL. */
KILN_API kiln_status kiln_tensor_info(const kiln_tensor* tensor, kiln_dtype* type, size_t* rank, int64_t* lens,
                                      int64_t* strides);
/* Where the element at index 0 is. */
KILN_API kiln_status kiln_tensor_data(const kiln_tensor* tensor, void** data);
/* Copies the elements row-major to `to`, which has exactly that many bytes. */
KILN_API kiln_status kiln_tensor_copy_to(const kiln_tensor* tensor, void* to, size_t bytes);
/* Element `index`, counted row-major, of a tensor of strings; a 0 stands after it. */
KILN_API kiln_status kiln_tensor_string(const kiln_tensor* tensor, size_t index, const char** text, size_t* length);
/* What one value of another object type holds: the items of a sequence; the value of an optional, if any; the keys of a
   map, then the value of each. */
KILN_API kiln_status kiln_tensor_item_count(const kiln_tensor* tensor, size_t* count);
KILN_API kiln_status kiln_tensor_item(const kiln_tensor* tensor, size_t index, kiln_tensor** item);

/* A file with one ONNX TensorProto ("input_0.pb"). */
KILN_API kiln_status kiln_tensor_read(const char* path, kiln_tensor** tensor);
KILN_API kiln_status kiln_tensor_write(const kiln_tensor* tensor, const char* path);

/* DLPack's structs, as dlpack/dlpack.h has them. No elements are copied. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* On success the tensor owns `managed`, and calls its deleter when kiln needs it no longer; else the caller does. */
KILN_API kiln_status kiln_tensor_from_dlpack(struct DLManagedTensor* managed, kiln_tensor** tensor);
KILN_API kiln_status kiln_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned* managed, kiln_tensor** tensor);
/* What the caller gets shares the tensor's memory, and outlives the handle unless that memory was borrowed without a
   `release`. Its consumer calls its deleter. */
KILN_API kiln_status kiln_tensor_to_dlpack(const kiln_tensor* tensor, struct DLManagedTensor** managed);
KILN_API kiln_status kiln_tensor_to_dlpack_versioned(const kiln_tensor* tensor,
                                                     struct DLManagedTensorVersioned** managed);

/* ---- Models ---- */

#include "kiln/interface/c/import_options.h"

/* A model as imported, to be compiled for any number of targets. */
typedef struct kiln_program kiln_program;

/* Imports an ONNX file, a graph or SavedModel of TensorFlow (its folder), or a TFLite file, or one in memory, which is
   not needed afterwards. `options` may be NULL. */
KILN_API kiln_status kiln_program_import(const char* path, const kiln_import_options* options, kiln_program** program);
KILN_API kiln_status kiln_program_import_memory(const void* bytes, size_t size, const kiln_import_options* options,
                                                kiln_program** program);
KILN_API void kiln_program_destroy(kiln_program* program);

KILN_API kiln_status kiln_program_input_count(const kiln_program* program, size_t* count);
KILN_API kiln_status kiln_program_output_count(const kiln_program* program, size_t* count);
/* Name, type, rank and extents of an input or output; `lens` has room for KILN_MAX_RANK. Each output may be NULL. */
KILN_API kiln_status kiln_program_input(const kiln_program* program, size_t index, const char** name, kiln_dtype* type,
                                        size_t* rank, kiln_dim* lens);
KILN_API kiln_status kiln_program_output(const kiln_program* program, size_t index, const char** name, kiln_dtype* type,
                                         size_t* rank, kiln_dim* lens);
/* The program as text, an instruction a line. */
KILN_API kiln_status kiln_program_text(const kiln_program* program, char** text);

/* ---- Compilation ---- */

typedef struct kiln_compile_options kiln_compile_options;
KILN_API kiln_status kiln_compile_options_create(kiln_compile_options** options);
KILN_API void kiln_compile_options_destroy(kiln_compile_options* options);
/* Sets an option by its name and value as text: docs/options.md lists them. */
KILN_API kiln_status kiln_compile_options_set(kiln_compile_options* options, const char* name, const char* value);
KILN_API kiln_status kiln_compile_options_get(const kiln_compile_options* options, const char* name, char** value);

/* A program compiled for a target: constant, for any number of threads at once, each with a workspace of its own. */
typedef struct kiln_executable kiln_executable;

/* `target` is "eigen" (the CPU), "reference", "hip", "hip:DEVICE" or "hip:ARCHITECTURE". `options` may be NULL. */
KILN_API kiln_status kiln_compile(const kiln_program* program, const char* target, const kiln_compile_options* options,
                                  kiln_executable** executable);
KILN_API void kiln_executable_destroy(kiln_executable* executable);

KILN_API kiln_status kiln_executable_input_count(const kiln_executable* executable, size_t* count);
KILN_API kiln_status kiln_executable_output_count(const kiln_executable* executable, size_t* count);
KILN_API kiln_status kiln_executable_input(const kiln_executable* executable, size_t index, const char** name,
                                           kiln_dtype* type, size_t* rank, kiln_dim* lens);
KILN_API kiln_status kiln_executable_output(const kiln_executable* executable, size_t index, const char** name,
                                            kiln_dtype* type, size_t* rank, kiln_dim* lens);
KILN_API kiln_status kiln_executable_input_index(const kiln_executable* executable, const char* name, size_t* index);
KILN_API kiln_status kiln_executable_output_index(const kiln_executable* executable, const char* name, size_t* index);

typedef enum kiln_format { KILN_TEXT = 0, KILN_JSON = 1 } kiln_format;
/* What compilation did: passes, steps, remarks, bytes of constants. */
KILN_API kiln_status kiln_executable_report(const kiln_executable* executable, kiln_format format, char** report);

/* ---- Files of programs (docs/saved_programs.md) ---- */

/* Writes a compiled program; with the program that it was compiled from, the file can be loaded on other machines,
   which compile that anew. `source` may be NULL. A file that exists is replaced at once. */
KILN_API kiln_status kiln_executable_save(const kiln_executable* executable, const kiln_program* source,
                                          const char* path);
/* Loads it for a target, without compiling it where it was compiled for this one. `options` may be NULL. */
KILN_API kiln_status kiln_executable_load(const char* path, const char* target, const kiln_compile_options* options,
                                          kiln_executable** executable);
/* The same of a program that is not compiled. */
KILN_API kiln_status kiln_program_save(const kiln_program* program, const char* path);
KILN_API kiln_status kiln_program_load(const char* path, kiln_program** program);

/* ---- Quantization (docs/quantize.md) ---- */

/* Samples of a program's inputs: of an array, or of a callback, of which one is held at a time. */
typedef struct kiln_samples kiln_samples;
/* The inputs of one sample, as a callback fills them. */
typedef struct kiln_sample kiln_sample;
/* Gives an input by its name: a copy of the tensor, which is in the host's memory. */
KILN_API kiln_status kiln_sample_set(kiln_sample* sample, const char* input, const kiln_tensor* value);
/* Says why the callback is about to return a status other than KILN_OK, which this returns. */
KILN_API kiln_status kiln_sample_fail(kiln_sample* sample, kiln_status status, const char* message);
/* Sets the inputs of sample `index`, counted from 0; one that sets none ends the samples. Where samples are needed
   again it begins with 0 once more. The function that needs samples calls it, and fails with a status other than
   KILN_OK. */
typedef kiln_status (*kiln_sample_callback)(void* user, size_t index, kiln_sample* sample);

KILN_API kiln_status kiln_samples_create(kiln_samples** samples);
KILN_API kiln_status kiln_samples_create_callback(kiln_sample_callback next, void* user, kiln_samples** samples);
KILN_API void kiln_samples_destroy(kiln_samples* samples);
/* Adds a sample to an array: names[i] is the name of inputs[i], whose memory is shared. */
KILN_API kiln_status kiln_samples_add(kiln_samples* samples, size_t input_count, const char* const* names,
                                      const kiln_tensor* const* inputs);

typedef struct kiln_quantize_options kiln_quantize_options;
KILN_API kiln_status kiln_quantize_options_create(kiln_quantize_options** options);
KILN_API void kiln_quantize_options_destroy(kiln_quantize_options* options);
/* Sets an option by its name and value as text: docs/options.md lists them. "precision" has to be set. */
KILN_API kiln_status kiln_quantize_options_set(kiln_quantize_options* options, const char* name, const char* value);
KILN_API kiln_status kiln_quantize_options_get(const kiln_quantize_options* options, const char* name, char** value);

/* The ranges of a program's values, by name: what a calibration table holds. */
typedef struct kiln_ranges kiln_ranges;
/* Finds the ranges that a precision takes by running samples. `compiling` is NULL or for these runs, here and below. */
KILN_API kiln_status kiln_calibrate(const kiln_program* program, const char* target,
                                    const kiln_quantize_options* options, const kiln_compile_options* compiling,
                                    const kiln_samples* samples, kiln_ranges** ranges);
KILN_API void kiln_ranges_destroy(kiln_ranges* ranges);
/* A table in any of its forms, which the content tells. */
KILN_API kiln_status kiln_ranges_read(const char* path, kiln_ranges** ranges);
/* `form` is "json", "native", "plain_json", "flatbuffers" or "cache". */
KILN_API kiln_status kiln_ranges_write(const kiln_ranges* ranges, const char* path, const char* form);
KILN_API kiln_status kiln_ranges_count(const kiln_ranges* ranges, size_t* count);
/* In the order of the names; each output may be NULL. */
KILN_API kiln_status kiln_ranges_item(const kiln_ranges* ranges, size_t index, const char** name, double* low,
                                      double* high);
KILN_API kiln_status kiln_ranges_find(const kiln_ranges* ranges, const char* name, double* low, double* high);

/* The program in another precision, by ranges or samples; either may be NULL. What needs ranges and has none takes them
   from the samples. Inputs and outputs keep their types. Reports of its compilation say what was not quantized. */
KILN_API kiln_status kiln_quantize(const kiln_program* program, const char* target,
                                   const kiln_quantize_options* options, const kiln_compile_options* compiling,
                                   const kiln_ranges* ranges, const kiln_samples* samples, kiln_program** quantized);
/* Writes a program as an ONNX model. */
KILN_API kiln_status kiln_program_write_onnx(const kiln_program* program, const char* path);

/* Where a quantized program loses accuracy, beside `reference`, which it was made of. */
typedef struct kiln_accuracy kiln_accuracy;
KILN_API kiln_status kiln_compare_accuracy(const kiln_program* reference, const kiln_program* quantized,
                                           const char* target, const kiln_compile_options* compiling,
                                           const kiln_samples* samples, kiln_accuracy** accuracy);
KILN_API void kiln_accuracy_destroy(kiln_accuracy* accuracy);
/* Figures of outputs and tensors, the one whose layer adds most noise first; and a drawing colored by them. */
KILN_API kiln_status kiln_accuracy_report(const kiln_accuracy* accuracy, kiln_format format, char** report);
KILN_API kiln_status kiln_accuracy_picture(const kiln_accuracy* accuracy, char** svg);

/* ---- Runs ---- */

typedef struct kiln_run_options kiln_run_options;
KILN_API kiln_status kiln_run_options_create(kiln_run_options** options);
KILN_API void kiln_run_options_destroy(kiln_run_options* options);
/* Sets an option by its name and value as text: docs/options.md lists them. */
KILN_API kiln_status kiln_run_options_set(kiln_run_options* options, const char* name, const char* value);
/* A target with a device: the platform's stream (hipStream_t, cudaStream_t) that runs give their work to, without
   waiting for it. NULL: a stream of the workspace, and runs wait. */
KILN_API kiln_status kiln_run_options_set_stream(kiln_run_options* options, void* stream);
/* Called after each step with its index and seconds; NULL: none. */
KILN_API kiln_status kiln_run_options_set_profile(kiln_run_options* options,
                                                  void (*profile)(void* user, size_t step, double seconds), void* user);
/* Stops the runs that use these options between two steps, from any thread, and those that begin later; with 0 they may
   run again. */
KILN_API kiln_status kiln_run_options_cancel(kiln_run_options* options, int cancel);

/* The memory of a run, reused from one to the next. One run at a time; any executable. */
typedef struct kiln_workspace kiln_workspace;

KILN_API kiln_status kiln_workspace_create(kiln_workspace** workspace);
KILN_API void kiln_workspace_destroy(kiln_workspace* workspace);
/* Sizes the workspace for inputs like these, of which only types and extents are read: such a run then allocates
   nothing. */
KILN_API kiln_status kiln_workspace_bind(kiln_workspace* workspace, const kiln_executable* executable,
                                         size_t input_count, const kiln_tensor* const* inputs);
/* Bytes of the arena, and how often it had to grow; each may be NULL. */
KILN_API kiln_status kiln_workspace_info(const kiln_workspace* workspace, size_t* bytes, size_t* growths);

/* Runs with inputs in order, of any strides. outputs[i] is a row-major tensor with the right extents, which is written
   to, or NULL, which becomes a new tensor that the caller destroys. `options` may be NULL. */
KILN_API kiln_status kiln_run(const kiln_executable* executable, kiln_workspace* workspace, size_t input_count,
                              const kiln_tensor* const* inputs, size_t output_count, kiln_tensor** outputs,
                              const kiln_run_options* options);
/* The same with inputs in any order: names[i] is the name of inputs[i]. */
KILN_API kiln_status kiln_run_named(const kiln_executable* executable, kiln_workspace* workspace, size_t input_count,
                                    const char* const* names, const kiln_tensor* const* inputs, size_t output_count,
                                    kiln_tensor** outputs, const kiln_run_options* options);

/* ---- Ops of the caller's own ---- */

/* What a callback of an op is called with; valid until it returns. */
typedef struct kiln_op_call kiln_op_call;
/* Returns KILN_OK, or the status that the caller of the import or run gets, after kiln_op_fail if there is more to say.
   A compute callback may be called by several threads at once. */
typedef kiln_status (*kiln_op_callback)(void* user, kiln_op_call* call);

/* Defines an op for the life of the process: models that are imported from now on may have nodes of this domain and op
   type. `shape` reads inputs' types and extents, which may be symbolic, and attributes, and sets the outputs' by
   kiln_op_set_output, in order. `compute` reads the inputs' row-major elements and writes the outputs', in the host's
   memory whatever the target. A second definition of a name is KILN_BAD_PARAM. */
KILN_API kiln_status kiln_op_define(const char* domain, const char* op_type, kiln_op_callback shape,
                                    kiln_op_callback compute, void* user, uint32_t flags);
/* The same with a version of what `compute` computes, another one wherever that changes: programs with an op whose
   version is NULL or empty, as kiln_op_define leaves it, are not kept in a cache of compiled programs. */
KILN_API kiln_status kiln_op_define_versioned(const char* domain, const char* op_type, const char* version,
                                              kiln_op_callback shape, kiln_op_callback compute, void* user,
                                              uint32_t flags);
/* A flag: equal inputs and attributes give equal outputs, so instructions may be merged and computed beforehand. */
#define KILN_OP_PURE 1u

KILN_API size_t kiln_op_input_count(const kiln_op_call* call);
KILN_API size_t kiln_op_output_count(const kiln_op_call* call);
KILN_API kiln_status kiln_op_input(const kiln_op_call* call, size_t index, kiln_dtype* type, size_t* rank,
                                   kiln_dim* lens);
/* In `compute`, where an output's type and extents are known. */
KILN_API kiln_status kiln_op_output(const kiln_op_call* call, size_t index, kiln_dtype* type, size_t* rank,
                                    kiln_dim* lens);
/* In `shape`: the type and extents of the next output. */
KILN_API kiln_status kiln_op_set_output(kiln_op_call* call, kiln_dtype type, size_t rank, const kiln_dim* lens);
/* In `compute`: an operand's elements, row-major. */
KILN_API kiln_status kiln_op_input_data(const kiln_op_call* call, size_t index, const void** data);
KILN_API kiln_status kiln_op_output_data(kiln_op_call* call, size_t index, void** data);
/* Attributes of the node. One that it has not is KILN_NOT_FOUND, one of another kind KILN_BAD_PARAM. */
KILN_API kiln_status kiln_op_attribute_integers(const kiln_op_call* call, const char* name, size_t* count,
                                                const int64_t** values);
KILN_API kiln_status kiln_op_attribute_reals(const kiln_op_call* call, const char* name, size_t* count,
                                             const float** values);
KILN_API kiln_status kiln_op_attribute_text(const kiln_op_call* call, const char* name, const char** value);
/* Says why the callback is about to return a status other than KILN_OK, which this returns. */
KILN_API kiln_status kiln_op_fail(kiln_op_call* call, kiln_status status, const char* message);

#ifdef __cplusplus
}
#endif

#endif
