#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/core/argument.hpp"

// Tensors exchanged with other libraries without a copy, by the structs of DLPack 1.1
// (https://dmlc.github.io/dlpack/latest/c_api.html).
namespace kiln::dlpack {

/// Kinds of memory, by DLPack's numbers.
enum class device_type : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,
  rocm = 10,
  rocm_host = 11,
  cuda_managed = 13
};

/// Where a tensor's memory is.
struct device {
  device_type type = device_type::cpu;
  std::int32_t id = 0;
  friend constexpr bool operator==(device, device) = default;
};

/// Whether the processor can read memory there.
constexpr bool is_host(device d) { return d.type != device_type::cuda && d.type != device_type::rocm; }

/// Kinds of elements, by DLPack's numbers.
enum class type_code : std::uint8_t {
  integer = 0,
  unsigned_integer = 1,
  real = 2,
  bfloat = 4,
  complex = 5,
  boolean = 6,
  f8e4m3fn = 10,
  f8e4m3fnuz = 11,
  f8e5m2 = 12,
  f8e5m2fnuz = 13,
  f8e8m0 = 14,
  f4e2m1 = 17
};

/// An element's type: `lanes` of so many bits.
struct data_type {
  type_code code = type_code::real;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

/// DLTensor: strides count elements, null ones mean row-major.
struct tensor {
  void* data = nullptr;
  device where;
  std::int32_t ndim = 0;
  data_type dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

/// DLManagedTensor, what a capsule named "dltensor" holds.
struct managed_tensor {
  tensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(managed_tensor* self) = nullptr;
};

struct version {
  std::uint32_t major_number = 1, minor_number = 1;
};

/// Bits of `managed_tensor_versioned::flags`.
inline constexpr std::uint64_t flag_read_only = 1, flag_copied = 2, flag_padded = 4;

/// DLManagedTensorVersioned, what a capsule named "dltensor_versioned" holds.
struct managed_tensor_versioned {
  version made_with;
  void* manager_ctx = nullptr;
  void (*deleter)(managed_tensor_versioned* self) = nullptr;
  std::uint64_t flags = 0;
  tensor dl_tensor;
};

static_assert(sizeof(device) == 8 && offsetof(device, id) == 4);
static_assert(sizeof(data_type) == 4 && offsetof(data_type, bits) == 1 && offsetof(data_type, lanes) == 2);
static_assert(sizeof(tensor) == 48 && offsetof(tensor, where) == 8 && offsetof(tensor, ndim) == 16 &&
              offsetof(tensor, dtype) == 20 && offsetof(tensor, shape) == 24 && offsetof(tensor, strides) == 32 &&
              offsetof(tensor, byte_offset) == 40);
static_assert(sizeof(managed_tensor) == 64 && offsetof(managed_tensor, manager_ctx) == 48 &&
              offsetof(managed_tensor, deleter) == 56);
static_assert(sizeof(managed_tensor_versioned) == 80 && offsetof(managed_tensor_versioned, manager_ctx) == 8 &&
              offsetof(managed_tensor_versioned, deleter) == 16 && offsetof(managed_tensor_versioned, flags) == 24 &&
              offsetof(managed_tensor_versioned, dl_tensor) == 32);

/// A tensor that another library gave.
struct received {
  argument value;  ///< over its memory, which is the device's where `where` says so
  device where;
  bool read_only = false;
};

/// Takes a tensor over: its deleter is called when the last argument over its memory goes. It must have a dtype of
/// kiln's, aligned elements and one lane, else it stays the caller's and an `unsupported`, `malformed` or `limit` error
/// says why. Integers of less than a byte come one to a byte, which only the versioned struct can say.
received receive(managed_tensor* from);
received receive(managed_tensor_versioned* from);

/// The argument for another library, which shares its memory: what the argument borrows must outlive the struct. The
/// caller calls its deleter, or whom it hands it to. Strings and other objects, and elements of less than a byte in the
/// unversioned struct, are an `unsupported` error.
managed_tensor* send(const argument& a, device where = {});
managed_tensor_versioned* send_versioned(const argument& a, device where = {}, bool read_only = false);

}  // namespace kiln::dlpack
