/* Tensors of other libraries in and out without a copy: both structs of DLPack, strides, types, a GiB. */
#include "dlpack_abi.h"

#include <unistd.h>

#include "check.h"

static int deleted;
static void count_deletion(DLManagedTensor* self) { deleted += self->manager_ctx == &deleted; }
static void count_deletion_versioned(DLManagedTensorVersioned* self) { deleted += self->manager_ctx == &deleted; }

static int64_t lens23[] = {2, 3}, columns_first[] = {1, 2};

static DLManagedTensor managed(void* data, uint8_t code, uint8_t bits) {
  DLManagedTensor m = {.manager_ctx = &deleted, .deleter = count_deletion};
  m.dl_tensor.data = data;
  m.dl_tensor.device.type = 1;
  m.dl_tensor.ndim = 2;
  m.dl_tensor.dtype.code = code;
  m.dl_tensor.dtype.bits = bits;
  m.dl_tensor.dtype.lanes = 1;
  m.dl_tensor.shape = lens23;
  return m;
}

static void test_in_and_out(void) {
  float room[10] = {0};
  float* const data = room + 4;
  DLManagedTensor m = managed(room, 2, 32), *out = NULL;
  m.dl_tensor.byte_offset = 16;
  m.dl_tensor.strides = columns_first;
  kiln_tensor* tensor = NULL;
  kiln_dtype type = KILN_I8;
  size_t rank = 0;
  int64_t lens[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  OK(kiln_tensor_from_dlpack(&m, &tensor));
  OK(kiln_tensor_info(tensor, &type, &rank, lens, strides));
  CHECK(type == KILN_F32 && rank == 2 && lens[1] == 3 && strides[0] == 1 && strides[1] == 2);
  CHECK(floats_of(tensor) == data);
  OK(kiln_tensor_to_dlpack(tensor, &out));
  kiln_tensor_destroy(tensor);
  CHECK(deleted == 0); /* `out` shares the memory */
  CHECK(out->dl_tensor.data == data && out->dl_tensor.byte_offset == 0 && out->dl_tensor.ndim == 2);
  CHECK(out->dl_tensor.shape[0] == 2 && out->dl_tensor.strides[1] == 2 && out->dl_tensor.device.type == 1);
  CHECK(out->dl_tensor.dtype.code == 2 && out->dl_tensor.dtype.bits == 32 && out->dl_tensor.dtype.lanes == 1);
  out->deleter(out);
  CHECK(deleted == 1);
}

static void test_versioned(void) {
  int8_t data[6] = {-2, 1, 0, 1, -1, 1};
  DLManagedTensorVersioned m = {
      .version = {1, 0}, .manager_ctx = &deleted, .deleter = count_deletion_versioned, .flags = 1 | 4};
  m.dl_tensor = managed(data, 0, 4).dl_tensor; /* i4, one to a byte, read-only */
  DLManagedTensorVersioned* out = NULL;
  DLManagedTensor* unversioned = NULL;
  kiln_tensor* tensor = NULL;
  kiln_dtype type = KILN_F64;
  m.version.major = 2;
  REFUSED(KILN_UNSUPPORTED, "major version of a DLPack tensor: expected 1, found 2",
          kiln_tensor_from_dlpack_versioned(&m, &tensor));
  m.version.major = 1;
  m.flags = 1;
  REFUSED(KILN_UNSUPPORTED, "found packed code 0, 4 bits", kiln_tensor_from_dlpack_versioned(&m, &tensor));
  CHECK(tensor == NULL);
  m.flags = 1 | 4;
  deleted = 0;
  OK(kiln_tensor_from_dlpack_versioned(&m, &tensor));
  OK(kiln_tensor_info(tensor, &type, NULL, NULL, NULL));
  CHECK(type == KILN_I4);
  REFUSED(KILN_UNSUPPORTED, "read-only", kiln_tensor_to_dlpack(tensor, &unversioned));
  OK(kiln_tensor_to_dlpack_versioned(tensor, &out));
  CHECK(out->version.major == 1 && out->flags == (1 | 4) && out->dl_tensor.data == data);
  out->deleter(out);
  CHECK(deleted == 0);
  kiln_tensor_destroy(tensor);
  CHECK(deleted == 1);
}

static void test_types(void) {
  static const struct {
    uint8_t code, bits;
    kiln_dtype type;
  } rows[] = {{2, 64, KILN_F64}, {2, 32, KILN_F32},       {2, 16, KILN_F16},     {4, 16, KILN_BF16},
              {0, 8, KILN_I8},   {0, 16, KILN_I16},       {0, 32, KILN_I32},     {0, 64, KILN_I64},
              {1, 8, KILN_U8},   {1, 16, KILN_U16},       {1, 32, KILN_U32},     {1, 64, KILN_U64},
              {6, 8, KILN_BOOL}, {10, 8, KILN_F8E4M3FN},  {11, 8, KILN_F8E4M3FNUZ}, {12, 8, KILN_F8E5M2},
              {13, 8, KILN_F8E5M2FNUZ}, {14, 8, KILN_F8E8M0}};
  double data[6] = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    DLManagedTensor m = managed(data, rows[i].code, rows[i].bits), *out = NULL;
    kiln_tensor* tensor = NULL;
    kiln_dtype type = KILN_MAP;
    OK(kiln_tensor_from_dlpack(&m, &tensor));
    OK(kiln_tensor_info(tensor, &type, NULL, NULL, NULL));
    CHECK(type == rows[i].type && kiln_dtype_size(type) == rows[i].bits / 8u);
    OK(kiln_tensor_to_dlpack(tensor, &out));
    CHECK(out->dl_tensor.dtype.code == rows[i].code && out->dl_tensor.dtype.bits == rows[i].bits);
    out->deleter(out);
    kiln_tensor_destroy(tensor);
  }
}

static void test_refused(void) {
  float data[6] = {0};
  int64_t negative[] = {2, -3}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  kiln_tensor* tensor = NULL;
  const int before = deleted;
  DLManagedTensor m = managed(data, 5, 64);
  REFUSED(KILN_UNSUPPORTED, "found code 5 (complex), 64 bits, 1 lanes", kiln_tensor_from_dlpack(&m, &tensor));
  m = managed(data, 2, 32);
  m.dl_tensor.dtype.lanes = 4;
  REFUSED(KILN_UNSUPPORTED, "4 lanes", kiln_tensor_from_dlpack(&m, &tensor));
  m = managed((char*)data + 2, 2, 32);
  REFUSED(KILN_UNSUPPORTED, "aligned to their size: expected 4, found 2", kiln_tensor_from_dlpack(&m, &tensor));
  m = managed(NULL, 2, 32);
  REFUSED(KILN_MALFORMED, "found none", kiln_tensor_from_dlpack(&m, &tensor));
  m = managed(data, 2, 32);
  m.dl_tensor.shape = negative;
  REFUSED(KILN_MALFORMED, "not negative: expected 0, found -3", kiln_tensor_from_dlpack(&m, &tensor));
  m.dl_tensor.shape = NULL;
  REFUSED(KILN_MALFORMED, "has a shape", kiln_tensor_from_dlpack(&m, &tensor));
  m.dl_tensor.ndim = -1;
  REFUSED(KILN_MALFORMED, "found ndim -1", kiln_tensor_from_dlpack(&m, &tensor));
  m.dl_tensor.shape = nine;
  m.dl_tensor.ndim = 9;
  REFUSED(KILN_LIMIT, "expected 8, found 9", kiln_tensor_from_dlpack(&m, &tensor));
  CHECK(tensor == NULL && deleted == before); /* they stay the caller's */
}

/* A tensor of a GPU is none of the CPU's; a read-only one is no output. */
static void test_operands(void) {
  kiln_program* const program = import_model(DIGITS "model.onnx");
  kiln_executable* const digits = compile_for(program, "eigen");
  kiln_workspace* workspace = NULL;
  kiln_tensor *scans = read_tensor(DIGITS "test_data_set_0/input_0.pb"), *gpu = NULL, *fixed = NULL;
  float data[6] = {0};
  DLManagedTensor m = managed(data, 2, 32);
  m.dl_tensor.device.type = 2;
  OK(kiln_tensor_from_dlpack(&m, &gpu));
  DLManagedTensorVersioned v = {.version = {1, 0}, .deleter = count_deletion_versioned, .flags = 1};
  v.dl_tensor = managed(data, 2, 32).dl_tensor;
  OK(kiln_tensor_from_dlpack_versioned(&v, &fixed));
  OK(kiln_workspace_create(&workspace));
  const kiln_tensor *const inputs[] = {gpu}, *const right[] = {scans};
  kiln_tensor *out = NULL, *own = fixed;
  REFUSED(KILN_BAD_PARAM, "in the host's memory", kiln_run(digits, workspace, 1, inputs, 1, &out, NULL));
  REFUSED(KILN_UNSUPPORTED, "in the host's memory", kiln_tensor_copy_to(gpu, data, sizeof data));
  REFUSED(KILN_BAD_PARAM, "read-only", kiln_run(digits, workspace, 1, right, 1, &own, NULL));
  kiln_tensor_destroy(gpu);
  kiln_tensor_destroy(fixed);
  kiln_tensor_destroy(scans);
  kiln_workspace_destroy(workspace);
  kiln_executable_destroy(digits);
  kiln_program_destroy(program);
}

static size_t resident_bytes(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) CHECK(!"/proc/self/statm can be read");
  if (file) fclose(file);
  return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A GiB goes in, through a borrowed tensor and a part of it, and out; nothing of it is touched. */
static void test_gibibyte(void) {
  const int64_t lens[] = {1 << 14, 1 << 14}, half[] = {1 << 13, 1 << 14};
  void* const memory = calloc(1 << 14, 4 << 14);
  const size_t before = resident_bytes();
  kiln_tensor *whole = NULL, *part = NULL, *again = NULL;
  DLManagedTensor* out = NULL;
  OK(kiln_tensor_borrow(KILN_F32, 2, lens, NULL, memory, free, memory, &whole));
  OK(kiln_tensor_leading_part(whole, 2, half, &part));
  CHECK(floats_of(part) == memory);
  OK(kiln_tensor_to_dlpack(whole, &out));
  CHECK(out->dl_tensor.data == memory);
  OK(kiln_tensor_from_dlpack(out, &again));
  CHECK(floats_of(again) == memory);
  CHECK(resident_bytes() - before < (size_t)16 << 20);
  kiln_tensor_destroy(part);
  kiln_tensor_destroy(whole);
  kiln_tensor_destroy(again); /* the last one frees the memory */
}

int main(void) {
  test_in_and_out();
  test_versioned();
  test_types();
  test_refused();
  test_operands();
  test_gibibyte();
  return finish();
}
