#include "kiln/runtime/dlpack.hpp"

#include <memory>

namespace kiln::dlpack {
namespace {

struct type_row {
  dtype type;
  data_type as;
};
constexpr type_row type_rows[] = {{dtype::f64, {type_code::real, 64}},
                                  {dtype::f32, {type_code::real, 32}},
                                  {dtype::f16, {type_code::real, 16}},
                                  {dtype::bf16, {type_code::bfloat, 16}},
                                  {dtype::i8, {type_code::integer, 8}},
                                  {dtype::i16, {type_code::integer, 16}},
                                  {dtype::i32, {type_code::integer, 32}},
                                  {dtype::i64, {type_code::integer, 64}},
                                  {dtype::u8, {type_code::unsigned_integer, 8}},
                                  {dtype::u16, {type_code::unsigned_integer, 16}},
                                  {dtype::u32, {type_code::unsigned_integer, 32}},
                                  {dtype::u64, {type_code::unsigned_integer, 64}},
                                  {dtype::boolean, {type_code::boolean, 8}},
                                  {dtype::f8e4m3fn, {type_code::f8e4m3fn, 8}},
                                  {dtype::f8e4m3fnuz, {type_code::f8e4m3fnuz, 8}},
                                  {dtype::f8e5m2, {type_code::f8e5m2, 8}},
                                  {dtype::f8e5m2fnuz, {type_code::f8e5m2fnuz, 8}},
                                  {dtype::f8e8m0, {type_code::f8e8m0, 8}},
                                  {dtype::f4e2m1, {type_code::f4e2m1, 4}},
                                  {dtype::i4, {type_code::integer, 4}},
                                  {dtype::u4, {type_code::unsigned_integer, 4}},
                                  {dtype::i2, {type_code::integer, 2}},
                                  {dtype::u2, {type_code::unsigned_integer, 2}}};

std::string text_of(const data_type& t) {
  const int code = static_cast<int>(t.code);
  return "code " + std::to_string(code) +
         (code == 5   ? " (complex), "
          : code == 3 ? " (opaque), "
                      : ", ") +
         std::to_string(t.bits) + " bits, " + std::to_string(t.lanes) + " lanes";
}

dtype dtype_of_tensor(const tensor& t, bool padded) {
  for (const type_row& row : type_rows)
    if (row.as.code == t.dtype.code && row.as.bits == t.dtype.bits && t.dtype.lanes == 1) {
      if (bits_of(row.type) < 8 && !padded)
        raise(errc::unsupported, "elements of a DLPack tensor take whole bytes: found packed " + text_of(t.dtype));
      return row.type;
    }
  raise(errc::unsupported, "kiln has a dtype for a DLPack tensor's elements: found " + text_of(t.dtype));
}

data_type type_of_argument(dtype type, bool may_pad) {
  for (const type_row& row : type_rows)
    if (row.type == type) {
      if (bits_of(type) < 8 && !may_pad)
        raise(fault::of(errc::unsupported, "an unversioned DLPack tensor has elements of whole bytes",
                        "at least 8 bits", type));
      return row.as;
    }
  raise(fault::of(errc::unsupported, "DLPack has a type for the elements", "a number or bool", type));
}

shape shape_of_tensor(const tensor& t, bool padded) {
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape))
    raise(errc::malformed, "a DLPack tensor has a shape: found ndim " + std::to_string(t.ndim));
  if (static_cast<std::size_t>(t.ndim) > max_rank)
    raise(fault::of(errc::limit, "a DLPack tensor has no more dims than a tensor may have", max_rank, t.ndim));
  shape s;
  s.type = dtype_of_tensor(t, padded);
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0)
      raise(fault::of(errc::malformed, "an extent of a DLPack tensor is not negative", 0, t.shape[i]));
    s.lens.push_back(t.shape[i]);
    if (t.strides) s.strides.push_back(t.strides[i]);
  }
  (void)s.bytes();  // raises where they don't fit into 64 bits
  return s;
}

std::byte* data_of_tensor(const tensor& t, const shape& s) {
  if (!t.data) {
    if (s.elements() == dimension(0)) return nullptr;
    raise(errc::malformed, "a DLPack tensor with elements has memory: found none");
  }
  std::byte* const data = static_cast<std::byte*>(t.data) + t.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(s.type) != 0)
    raise(fault::of(errc::unsupported, "elements of a DLPack tensor are aligned to their size", size_of(s.type),
                    reinterpret_cast<std::uintptr_t>(data) % size_of(s.type)));
  return data;
}

template <class Managed> void delete_managed(void* managed) {
  auto* m = static_cast<Managed*>(managed);
  if (m->deleter) m->deleter(m);
}

template <class Managed> received receive_tensor(Managed* from, std::uint64_t flags) {
  const tensor& t = from->dl_tensor;
  const shape s = shape_of_tensor(t, (flags & flag_padded) != 0);
  std::byte* const data = data_of_tensor(t, s);
  const device where = t.where;
  buffer owner = buffer::borrow(data, static_cast<std::size_t>(s.bytes().value()), from, delete_managed<Managed>);
  return {argument(s, std::move(owner), data), where, (flags & flag_read_only) != 0};
}

// What a tensor that is sent points to, and the argument that keeps its memory.
template <class Managed> struct sent {
  Managed managed;
  argument kept;
  ints lens, strides;

  sent(const argument& a, device where, bool may_pad)
      : kept(a), lens(to_ints(a.get_shape().lens)), strides(to_ints(a.get_shape().element_strides())) {
    tensor& t = managed.dl_tensor;
    t.data = kept.data();
    t.where = where;
    t.ndim = static_cast<std::int32_t>(lens.size());
    t.dtype = type_of_argument(a.get_shape().type, may_pad);
    t.shape = lens.data();
    t.strides = strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { delete static_cast<sent*>(self->manager_ctx); };
  }
};

}  // namespace

received receive(managed_tensor* from) { return receive_tensor(from, 0); }

received receive(managed_tensor_versioned* from) {
  if (from->made_with.major_number != 1)
    raise(fault::of(errc::unsupported, "major version of a DLPack tensor", 1, from->made_with.major_number));
  return receive_tensor(from, from->flags);
}

managed_tensor* send(const argument& a, device where) { return &(new sent<managed_tensor>(a, where, false))->managed; }

managed_tensor_versioned* send_versioned(const argument& a, device where, bool read_only) {
  auto* s = new sent<managed_tensor_versioned>(a, where, true);
  s->managed.flags = (read_only ? flag_read_only : 0) | (bits_of(a.get_shape().type) < 8 ? flag_padded : 0);
  return &s->managed;
}

}  // namespace kiln::dlpack
