#pragma once
#include "kiln/onnx/impl/importer.hpp"
#include "kiln/op/dynamic/sequence.hpp"

namespace kiln::onnx {

/// Sets a member of the importer for a while.
template <class Guarded, class New>
struct restored {
  Guarded& place;
  Guarded before;
  restored(Guarded& p, New now) : place(p), before(p) { p = now; }
  restored(const restored&) = delete;
  restored& operator=(const restored&) = delete;
  ~restored() { place = before; }
};

/// Takes an element of the way off again.
struct popped_at_end {
  std::vector<std::uint32_t>& way;
  explicit popped_at_end(std::vector<std::uint32_t>& w) : way(w) {}
  popped_at_end(const popped_at_end&) = delete;
  popped_at_end& operator=(const popped_at_end&) = delete;
  ~popped_at_end() { way.pop_back(); }
};

/// A sequence of known items, or an empty optional, as one value.
inline value as_value(builder& b, const variable& v) {
  if (v.is_sequence) return b.add(op::make_sequence{}, v.items);
  return v.is_empty ? b.add(op::make_optional{}, small_vector<value>{}) : v.tensor;
}

}  // namespace kiln::onnx
