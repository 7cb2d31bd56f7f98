#include "kiln/op/dynamic/map.hpp"

#include <algorithm>

#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

namespace {

using detail::one;

// Values of one element each as a row; a place without a value keeps zero.
argument row_of(dtype type, const std::vector<const argument*>& values) {
  argument out(shape{type, {1, static_cast<std::int64_t>(values.size())}});
  const std::size_t size = size_of(type);
  std::memset(out.data(), 0, values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    if (values[i]->get_shape().type != type || values[i]->elements() != 1)
      raise(fault::of(errc::shape_mismatch, "type of a map's value", shape{type, {}}, values[i]->get_shape()));
    std::memcpy(out.data() + i * size, values[i]->data(), size);
  }
  return is_object(type) ? retained(out.get_shape(), out.data()) : out;
}

template <class Keys> std::vector<const argument*> found(const map_object& m, const Keys& held, const Keys& wanted) {
  std::vector<const argument*> out;
  for (const auto& k : wanted) {
    const auto at = std::lower_bound(held.begin(), held.end(), k);
    out.push_back(at != held.end() && *at == k ? &m.values[static_cast<std::size_t>(at - held.begin())] : nullptr);
  }
  return out;
}

}  // namespace

small_vector<argument> zip_maps::produce(std::span<const argument> in) const {
  const argument x = in[0].contiguous();
  const dims& lens = x.get_shape().lens;
  const auto columns = static_cast<std::size_t>(lens.back().value());
  const std::size_t rows = lens.size() == 1 ? 1 : static_cast<std::size_t>(lens[0].value());
  const std::size_t size = size_of(x.get_shape().type);
  std::vector<argument> items;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<argument> values;
    for (std::size_t k = 0; k < columns; ++k)
      values.push_back(
          argument(shape{x.get_shape().type, {}}, const_cast<std::byte*>(x.data()) + (r * columns + k) * size).copy());
    items.push_back(map_argument(in[1], std::move(values)));
  }
  return one(sequence_argument(std::move(items)));
}

small_vector<argument> map_row::produce(std::span<const argument> in) const {
  const map_object& m = entries_of(in[0]);
  const dtype held = m.keys.get_shape().type, wanted = in[1].get_shape().type;
  if (!m.is_empty() && held != wanted) raise(fault::of(errc::shape_mismatch, "dtype of a map's keys", wanted, held));
  if (wanted == dtype::string && !m.is_empty())
    return one(row_of(type, found(m, strings_of(m.keys), strings_of(in[1]))));
  return one(row_of(type, m.is_empty() ? std::vector<const argument*>(static_cast<std::size_t>(in[1].elements()))
                                       : found(m, m.keys.to<std::int64_t>(), in[1].to<std::int64_t>())));
}

small_vector<argument> map_values::produce(std::span<const argument> in) const {
  std::vector<const argument*> all;
  for (const argument& v : entries_of(in[0]).values) all.push_back(&v);
  return one(row_of(type, all));
}

}  // namespace kiln::op
