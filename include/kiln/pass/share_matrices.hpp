#pragma once
#include <cstring>

#include "kiln/op/linear/dot.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// The one matrix that a constant of more dims holds again and again; a rank of 0 where they differ.
inline literal repeated_matrix(const literal& l) {
  const dims& lens = l.get_shape().lens;
  const dims own{lens[lens.size() - 2], lens[lens.size() - 1]};
  const auto bytes = static_cast<std::size_t>(shape(l.get_shape().type, own).bytes().value());
  const auto all = static_cast<std::size_t>(l.get_shape().bytes().value());
  if (bytes == 0) return {};
  for (std::size_t at = bytes; at < all; at += bytes)
    if (std::memcmp(l.bytes(), l.bytes() + at, bytes) != 0) return {};
  return laid_out(l, {own, {own[1], 1}, 0});
}

}  // namespace detail

/// Constants of f32 that dots multiply by and that hold one matrix for each of a batch, the same each time, as folding
/// writes small ones: they become that matrix, repeated, so that it is stored, quantized and written once. At run time.
template <class Module> pass_note share_matrices(Module& m) {
  pass_note note("share_matrices");
  rewriter<Module> r(m);
  const std::uint32_t count = r.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!r.template get_if<op::dot>({i, 0})) continue;
    const value_id w = r.input({i, 0}, 1);
    const constant_view c = viewed_constant(r, w);
    if (!c || c.from->has_symbols() || c.from->get_shape().type != dtype::f32) continue;
    const layout core = detail::without_repeats(c.at);
    if (core.lens.size() < 3) continue;
    const literal one = detail::repeated_matrix(laid_out(*c.from, core));
    if (one.get_shape().rank() == 0) continue;
    r.replace(w, detail::repeated(r, r.add_literal(one, {detail::origin_of(r, w)}), r.shape_of(w).lens));
    note.count("matrices");
  }
  return note;
}

}  // namespace kiln
