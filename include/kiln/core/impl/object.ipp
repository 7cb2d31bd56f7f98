#include "kiln/core/object.hpp"

#include <algorithm>
#include <numeric>

namespace kiln {

namespace {

template <class T> const T& downcast(const object& o) {
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
bool map_object::equals(const object& other) const {
  const auto& theirs = downcast<map_object>(other);
  return equal_values(keys, theirs.keys) && std::ranges::equal(values, theirs.values, equal_values);
}
bool complex_object::equals(const object& other) const {
  return std::memcmp(&value, &downcast<complex_object>(other).value, sizeof value) == 0;
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

namespace {

template <class Key>
argument sorted_map(const std::vector<Key>& keys, std::vector<argument>& values, const auto& as_argument) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) -> const Key& { return keys[i]; });
  std::vector<Key> sorted;
  std::vector<argument> held;
  for (const std::size_t i : order) {
    if (!sorted.empty() && sorted.back() == keys[i])
      raise(fault::of(errc::invalid_argument, "keys of a map stand once", "another key", keys[i]));
    sorted.push_back(keys[i]);
    held.push_back(values[i].owned());
  }
  return object_argument(dtype::map, {}, {std::make_shared<const map_object>(as_argument(sorted), std::move(held))});
}

}  // namespace

argument map_argument(const argument& keys, std::vector<argument> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  if (keys.elements() != n)
    raise(fault::of(errc::invalid_argument, "a map has a value for each key", keys.elements(), n));
  if (keys.get_shape().type == dtype::string)
    return sorted_map(strings_of(keys), values,
                      [&](const std::vector<std::string>& k) { return string_argument({n}, k); });
  check_type(keys, dtype::i64);
  const auto numbers = keys.to<std::int64_t>();
  return sorted_map(std::vector<std::int64_t>(numbers.begin(), numbers.end()), values,
                    [&](const std::vector<std::int64_t>& k) {
                      return argument::of<std::int64_t>({n}, std::span<const std::int64_t>(k));
                    });
}

argument complex_argument(dtype type, const dims& lens, std::span<const std::complex<double>> elements) {
  if (!is_complex(type)) raise(fault::of(errc::invalid_argument, "element type of complex numbers", dtype::c64, type));
  std::vector<object_pointer> objects;
  objects.reserve(elements.size());
  for (const std::complex<double>& z : elements) {
    const std::complex<double> kept = type == dtype::c64 ? std::complex<double>(std::complex<float>(z)) : z;
    auto made = std::make_shared<const complex_object>(kept);
    objects.push_back(made->is_empty() ? nullptr : std::move(made));
  }
  return object_argument(type, lens, objects);
}

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

const map_object& entries_of(const argument& a) {
  static const map_object none{argument::of<std::int64_t>({0}, std::span<const std::int64_t>()), {}};
  const object_handle h = single(a, dtype::map);
  return h ? downcast<map_object>(*h) : none;
}

std::vector<std::complex<double>> complexes_of(const argument& a) {
  if (!is_complex(a.get_shape().type)) check_type(a, dtype::c64);
  const argument dense = a.contiguous();
  std::vector<std::complex<double>> out(static_cast<std::size_t>(dense.elements()));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const object_handle h = handle_at(dense, static_cast<std::int64_t>(i)))
      out[i] = downcast<complex_object>(*h).value;
  return out;
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
