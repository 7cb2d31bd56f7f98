#include <cstring>

#include "kiln/core/object.hpp"
#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/onnx/tensor.hpp"

using namespace kiln;
using namespace kiln::c;

void kiln::c::check_on_host(const kiln_tensor& t) {
  if (!dlpack::is_host(t.where))
    raise(errc::unsupported, "elements that are copied or calibrate are in the host's memory: found device " +
                                 std::to_string(static_cast<int>(t.where.type)) + ":" + std::to_string(t.where.id) +
                                 " of DLPack's");
}

namespace {

const object* object_of(const kiln_tensor& t, std::size_t index) {
  if (index >= static_cast<std::size_t>(t.value.elements()))
    raise(fault::of(errc::invalid_argument, "an index lies within the elements", t.value.elements(), index));
  return reinterpret_cast<const object_handle*>(t.value.data())[index];
}

std::vector<argument> items_held(const kiln_tensor& t) {
  const shape& s = t.value.get_shape();
  if (s.type == dtype::sequence) return items_of(t.value);
  if (s.type == dtype::optional) {
    const argument* const value = value_of_optional(t.value);
    return value ? std::vector<argument>{*value} : std::vector<argument>{};
  }
  if (s.type == dtype::map) {
    const map_object& map = entries_of(t.value);
    std::vector<argument> out{map.keys};
    out.insert(out.end(), map.values.begin(), map.values.end());
    return out;
  }
  raise(fault::of(errc::invalid_argument, "type of a tensor with items", "sequence, optional or map", s.type));
}

}  // namespace

kiln_status kiln_tensor_create(kiln_dtype type, size_t rank, const int64_t* lens, kiln_tensor** tensor) {
  return guarded([&] {
    kiln_tensor*& out = given(tensor, "tensor");
    const shape s = checked_shape(type, rank, lens);
    if (is_object(s.type))
      raise(fault::of(errc::unsupported, "element type of a tensor that the caller fills", "a number or bool", s.type));
    out = new kiln_tensor{argument(s)};
  });
}

kiln_status kiln_tensor_borrow(kiln_dtype type, size_t rank, const int64_t* lens, const int64_t* strides, void* data,
                               void (*release)(void* owner), void* owner, kiln_tensor** tensor) {
  return guarded([&] {
    kiln_tensor*& out = given(tensor, "tensor");
    const shape s = checked_shape(type, rank, lens, strides);
    if (is_object(s.type))
      raise(fault::of(errc::unsupported, "element type of borrowed memory", "a number or bool", s.type));
    if (s.elements() != dimension(0)) not_null(data, "data");
    if (reinterpret_cast<std::uintptr_t>(data) % size_of(s.type) != 0)
      raise(fault::of(errc::invalid_argument, "borrowed elements are aligned to their size", size_of(s.type),
                      reinterpret_cast<std::uintptr_t>(data) % size_of(s.type)));
    auto made = std::make_unique<kiln_tensor>();
    auto* const bytes = static_cast<std::byte*>(data);
    made->value =
        release ? argument(s, buffer::borrow(bytes, static_cast<std::size_t>(s.bytes().value()), owner, release), bytes)
                : argument(s, data);
    out = made.release();
  });
}

kiln_status kiln_tensor_leading_part(const kiln_tensor* whole, size_t rank, const int64_t* lens, kiln_tensor** part) {
  return guarded([&] {
    kiln_tensor*& out = given(part, "part");
    const kiln_tensor& from = given(whole, "whole");
    out = new kiln_tensor{leading_part(from.value, checked_lens(rank, lens)), from.where, from.read_only};
  });
}

kiln_status kiln_tensor_create_strings(size_t rank, const int64_t* lens, const char* const* texts,
                                       const size_t* lengths, kiln_tensor** tensor) {
  return guarded([&] {
    kiln_tensor*& out = given(tensor, "tensor");
    const shape s = checked_shape(KILN_STRING, rank, lens);
    const auto count = static_cast<std::size_t>(s.elements().value());
    std::vector<std::string> strings;
    for (const char* const& text : given_array(texts, count, "texts"))
      strings.emplace_back(not_null(text, "a text"), lengths ? lengths[strings.size()] : std::strlen(text));
    out = new kiln_tensor{string_argument(s.lens, strings)};
  });
}

void kiln_tensor_destroy(kiln_tensor* tensor) { delete tensor; }

kiln_status kiln_tensor_info(const kiln_tensor* tensor, kiln_dtype* type, size_t* rank, int64_t* lens,
                             int64_t* strides) {
  return guarded([&] {
    const shape& s = given(tensor, "tensor").value.get_shape();
    put_shape(s, type, rank, lens);
    const dims steps = s.element_strides();
    for (std::size_t i = 0; strides && i < s.rank(); ++i) strides[i] = steps[i].value();
  });
}

kiln_status kiln_tensor_data(const kiln_tensor* tensor, void** data) {
  return guarded([&] {
    void*& out = given(data, "data");
    out = const_cast<std::byte*>(given(tensor, "tensor").value.data());
  });
}

kiln_status kiln_tensor_copy_to(const kiln_tensor* tensor, void* to, size_t bytes) {
  return guarded([&] {
    const kiln_tensor& from = given(tensor, "tensor");
    check_on_host(from);
    const shape& s = from.value.get_shape();
    if (is_object(s.type))
      raise(fault::of(errc::unsupported, "element type of a tensor that is copied", "a number or bool", s.type));
    const auto wanted = static_cast<std::size_t>(s.bytes().value());
    if (bytes != wanted) raise(fault::of(errc::invalid_argument, "bytes of the tensor's elements", wanted, bytes));
    if (bytes == 0) return;
    std::memcpy(not_null(to, "to"), from.value.contiguous().data(), bytes);
  });
}

kiln_status kiln_tensor_string(const kiln_tensor* tensor, size_t index, const char** text, size_t* length) {
  return guarded([&] {
    const char*& out = given(text, "text");
    const kiln_tensor& t = given(tensor, "tensor");
    const shape& s = t.value.get_shape();
    if (s.type != dtype::string)
      raise(fault::of(errc::invalid_argument, "element type of the tensor", dtype::string, s.type));
    const object* const o = object_of(t, index);
    const std::string* const held = o ? &static_cast<const text_object*>(o)->value : nullptr;
    out = held ? held->c_str() : "";
    put(length, held ? held->size() : 0);
  });
}

kiln_status kiln_tensor_item_count(const kiln_tensor* tensor, size_t* count) {
  return guarded([&] {
    size_t& out = given(count, "count");
    out = items_held(given(tensor, "tensor")).size();
  });
}

kiln_status kiln_tensor_item(const kiln_tensor* tensor, size_t index, kiln_tensor** item) {
  return guarded([&] {
    kiln_tensor*& out = given(item, "item");
    std::vector<argument> held = items_held(given(tensor, "tensor"));
    if (index >= held.size())
      raise(fault::of(errc::invalid_argument, "an index lies within the items", held.size(), index));
    out = new kiln_tensor{std::move(held[index])};
  });
}

kiln_status kiln_tensor_read(const char* path, kiln_tensor** tensor) {
  return guarded([&] {
    kiln_tensor*& out = given(tensor, "tensor");
    out = new kiln_tensor{onnx::read_tensor(not_null(path, "path")).value};
  });
}

kiln_status kiln_tensor_write(const kiln_tensor* tensor, const char* path) {
  return guarded([&] {
    const kiln_tensor& from = given(tensor, "tensor");
    check_on_host(from);
    onnx::write_tensor(not_null(path, "path"), from.value);
  });
}
