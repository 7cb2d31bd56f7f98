/* reload LIBRARY: opening libkiln.so starts no thread; closing it after use leaves none, and nothing of it in memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../process.h"
#include "kiln/interface/c/kiln.h"

/* The address of a function; a union, for C has no cast from an object's to a function's. */
typedef union {
  void* object;
  kiln_status (*program_import)(const char*, const kiln_import_options*, kiln_program**);
  void (*program_destroy)(kiln_program*);
  kiln_status (*compile)(const kiln_program*, const char*, const kiln_compile_options*, kiln_executable**);
  void (*executable_destroy)(kiln_executable*);
  kiln_status (*workspace_create)(kiln_workspace**);
  void (*workspace_destroy)(kiln_workspace*);
  kiln_status (*tensor_read)(const char*, kiln_tensor**);
  void (*tensor_destroy)(kiln_tensor*);
  kiln_status (*run)(const kiln_executable*, kiln_workspace*, size_t, const kiln_tensor* const*, size_t, kiln_tensor**,
                     const kiln_run_options*);
  const char* (*last_error)(void);
} function;

static function find(void* library, const char* name) {
  function out;
  out.object = dlsym(library, name);
  if (!out.object) fail(name, dlerror());
  return out;
}

static void use(void* library) {
  kiln_program *program = NULL, *none = NULL;
  kiln_executable* digits = NULL;
  kiln_workspace* workspace = NULL;
  kiln_tensor *scans = NULL, *rows = NULL;
  const function error = find(library, "kiln_last_error");
  kiln_status status = find(library, "kiln_program_import").program_import("no such", NULL, &none);
  if (status != KILN_NOT_FOUND || !*error.last_error()) fail("kiln_program_import", "a file that is not there was found");
  status = find(library, "kiln_program_import").program_import("examples/models/digits/model.onnx", NULL, &program);
  if (status == KILN_OK) status = find(library, "kiln_compile").compile(program, "eigen", NULL, &digits);
  if (status == KILN_OK) status = find(library, "kiln_workspace_create").workspace_create(&workspace);
  if (status == KILN_OK)
    status = find(library, "kiln_tensor_read")
                 .tensor_read("examples/models/digits/test_data_set_0/input_0.pb", &scans);
  const kiln_tensor* const inputs[] = {scans};
  if (status == KILN_OK) status = find(library, "kiln_run").run(digits, workspace, 1, inputs, 1, &rows, NULL);
  if (status != KILN_OK) fail("a call", error.last_error());
  find(library, "kiln_tensor_destroy").tensor_destroy(rows);
  find(library, "kiln_tensor_destroy").tensor_destroy(scans);
  find(library, "kiln_workspace_destroy").workspace_destroy(workspace);
  find(library, "kiln_executable_destroy").executable_destroy(digits);
  find(library, "kiln_program_destroy").program_destroy(program);
}

int main(int count, char** words) {
  if (count != 2) fail("arguments", "expected the library's path");
  for (int i = 0; i < 3; ++i) {
    void* const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("dlopen", dlerror());
    if (threads_here() != 1) fail("dlopen", "the library starts threads when it is opened");
    use(library);
    if (threads_here() != 1) fail("use", "threads are left");
    if (dlclose(library) != 0) fail("dlclose", dlerror());
    if (threads_here() != 1) fail("dlclose", "threads are left");
    if (is_mapped("/libkiln.so") || is_mapped("/libkiln_eigen.so")) fail("dlclose", "the library stays in memory");
  }
  return 0;
}
