#include "kiln/interface/c/impl/handles.hpp"

using namespace kiln;
using namespace kiln::c;

// The caller's structs are dlpack/dlpack.h's, kiln's have their layout.
namespace {

template <class Managed> void receive(void* managed, kiln_tensor** tensor) {
  kiln_tensor*& out = given(tensor, "tensor");
  auto made = std::make_unique<kiln_tensor>();
  dlpack::received r = dlpack::receive(static_cast<Managed*>(not_null(managed, "managed")));
  made->value = std::move(r.value);
  made->where = r.where;
  made->read_only = r.read_only;
  out = made.release();
}

}  // namespace

kiln_status kiln_tensor_from_dlpack(struct DLManagedTensor* managed, kiln_tensor** tensor) {
  return guarded([&] { receive<dlpack::managed_tensor>(managed, tensor); });
}

kiln_status kiln_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned* managed, kiln_tensor** tensor) {
  return guarded([&] { receive<dlpack::managed_tensor_versioned>(managed, tensor); });
}

kiln_status kiln_tensor_to_dlpack(const kiln_tensor* tensor, struct DLManagedTensor** managed) {
  return guarded([&] {
    DLManagedTensor*& out = given(managed, "managed");
    const kiln_tensor& t = given(tensor, "tensor");
    if (t.read_only)
      raise(errc::unsupported, "an unversioned DLPack tensor may be written: found one that is read-only");
    out = reinterpret_cast<DLManagedTensor*>(dlpack::send(t.value, t.where));
  });
}

kiln_status kiln_tensor_to_dlpack_versioned(const kiln_tensor* tensor, struct DLManagedTensorVersioned** managed) {
  return guarded([&] {
    DLManagedTensorVersioned*& out = given(managed, "managed");
    const kiln_tensor& t = given(tensor, "tensor");
    out = reinterpret_cast<DLManagedTensorVersioned*>(dlpack::send_versioned(t.value, t.where, t.read_only));
  });
}
