#include "kiln/core/object.hpp"

namespace kiln {

namespace {

template <class T>
const T& downcast(const object& o) {
  return static_cast<const T&>(o);  // equal dtypes hold objects of one class
}

object_handle handle_at(const argument& a, std::int64_t i) {
  object_handle h = nullptr;
  std::memcpy(&h, a.data() + static_cast<std::size_t>(i) * sizeof h, sizeof h);
  return h;
}

void check_type(const argument& a, dtype t) {
  if (a.get_shape().type != t)
    raise(fault::of(errc::invalid_argument, "element type of the argument", t, a.get_shape().type));
}

// The only element of a rank 0 argument.
object_handle single(const argument& a, dtype t) {
  check_type(a, t);
  if (a.elements() != 1)
    raise(fault::of(errc::shape_mismatch, "number of elements of such a value", 1, a.get_shape().lens));
  return handle_at(a, 0);
}

struct owned_objects {
  std::vector<object_handle> handles;
  std::vector<object_pointer> owners;
};

}  // namespace

bool text_object::equals(const object& other) const { return value == downcast<text_object>(other).value; }
bool sequence_object::equals(const object& other) const {
  const auto& theirs = downcast<sequence_object>(other).items;
  if (items.size() != theirs.size()) return false;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!equal_values(items[i], theirs[i])) return false;
  return true;
}
bool optional_object::equals(const object& other) const {
  return equal_values(value, downcast<optional_object>(other).value);
}

argument object_argument(dtype type, const dims& lens, const std::vector<object_pointer>& elements) {
  if (product(lens).value() != static_cast<std::int64_t>(elements.size()))
    raise(fault::of(errc::shape_mismatch, "as many elements as the extents ask for", product(lens), elements.size()));
  auto held = std::make_unique<owned_objects>();
  held->handles.reserve(elements.size() + 1);
  for (const object_pointer& o : elements) held->handles.push_back(o.get());
  held->owners = elements;
  held->handles.push_back(nullptr);  // so that no elements have an address too
  auto* bytes = reinterpret_cast<std::byte*>(held->handles.data());
  const std::size_t size = elements.size() * sizeof(object_handle);
  buffer owner = buffer::borrow(bytes, size, held.get(), [](void* p) { delete static_cast<owned_objects*>(p); });
  held.release();
  return argument({type, lens}, std::move(owner), bytes);
}

argument string_argument(const dims& lens, std::span<const std::string> elements) {
  std::vector<object_pointer> objects;
  objects.reserve(elements.size());
  for (const std::string& s : elements) objects.push_back(s.empty() ? nullptr : std::make_shared<const text_object>(s));
  return object_argument(dtype::string, lens, objects);
}

argument sequence_argument(std::vector<argument> items) {
  for (argument& a : items) a = a.owned();
  return object_argument(dtype::sequence, {}, {std::make_shared<const sequence_object>(std::move(items))});
}

argument optional_argument(argument value) {
  return object_argument(dtype::optional, {}, {std::make_shared<const optional_object>(value.owned())});
}
argument empty_optional() { return object_argument(dtype::optional, {}, {nullptr}); }

std::vector<std::string> strings_of(const argument& a) {
  check_type(a, dtype::string);
  const argument dense = a.contiguous();
  std::vector<std::string> out;
  const std::int64_t n = dense.elements();
  out.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const object_handle h = handle_at(dense, i);
    out.push_back(h ? downcast<text_object>(*h).value : std::string());
  }
  return out;
}

const std::vector<argument>& items_of(const argument& a) {
  static const std::vector<argument> none;
  const object_handle h = single(a, dtype::sequence);
  return h ? downcast<sequence_object>(*h).items : none;
}

const argument* value_of_optional(const argument& a) {
  const object_handle h = single(a, dtype::optional);
  return h ? &downcast<optional_object>(*h).value : nullptr;
}

argument retained(const shape& s, const std::byte* handles) {
  std::vector<object_pointer> objects(static_cast<std::size_t>(s.elements().value()));
  for (std::size_t i = 0; i < objects.size(); ++i) {
    object_handle h = nullptr;
    std::memcpy(&h, handles + i * sizeof h, sizeof h);
    if (h) objects[i] = h->shared_from_this();
  }
  return object_argument(s.type, s.lens, objects);
}

bool equal_values(const argument& a, const argument& b) {
  if (a.get_shape().type != b.get_shape().type || !(a.get_shape().lens == b.get_shape().lens)) return false;
  const argument x = a.contiguous(), y = b.contiguous();
  const std::int64_t n = x.elements();
  if (!is_object(x.get_shape().type))
    return n == 0 || std::memcmp(x.data(), y.data(), static_cast<std::size_t>(n) * size_of(x.get_shape().type)) == 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const object_handle left = handle_at(x, i), right = handle_at(y, i);
    // an empty string or sequence may also be an object that holds nothing
    if (left != right && !(left && right ? left->equals(*right) : (left ? left : right)->is_empty())) return false;
  }
  return true;
}

}  // namespace kiln
