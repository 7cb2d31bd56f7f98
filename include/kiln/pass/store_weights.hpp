#pragma once
#include "kiln/op/index/gather.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// A matrix [rows, depth] as `block_dequantize` reads it: operands are data, scales and, where there are some, zero
/// points.
struct stored_matrix {
  op::block_dequantize op{};
  small_vector<literal> operands{};
};

/// The instructions of a module that read a constant f32 matrix which may be stored in blocks: a dot whose right
/// operand it is, the same for the whole batch, or a gather of its rows.
template <class Module> constexpr small_vector<value_id> readers_of_matrices(Module& m) {
  small_vector<value_id> out;
  const rewriter<Module> r(m);
  for (std::uint32_t i = 0; i < r.size(); ++i) {
    const value_id v{i, 0};
    const auto* const gather = r.template get_if<op::gather>(v);
    if (!r.template get_if<op::dot>(v) && !gather) continue;
    const value_id w = r.input(v, gather ? 0 : 1);
    const constant_view c = viewed_constant(r, w);
    if (!c || c.from->has_symbols() || r.shape_of(w).type != dtype::f32) continue;
    const std::size_t rank = c.at.lens.size();
    if (product(c.at.lens) == dimension(0)) continue;
    bool is_matrix = gather ? rank == 2 && normal_axis(gather->axis, rank) == 0 : rank >= 2;
    for (std::size_t d = 0; d + 2 < rank; ++d) is_matrix = is_matrix && !varies(c.at, d);
    if (is_matrix && (gather || !viewed_constant(r, r.input(v, 0)))) out.push_back(v);
  }
  return out;
}

namespace detail {

template <class Module, class Store> class weight_storer {
 public:
  constexpr weight_storer(Module& m, const small_vector<value_id>& readers, Store& store, pass_note& note)
      : r_(m), readers_(readers), store_(store), note_(note) {}

  constexpr void run() {
    for (const value_id v : readers_) {
      const std::size_t at = r_.template get_if<op::gather>(v) ? 0 : 1;
      // operands change in place: the list goes on naming instructions
      if (const value_id by = stored(v, r_.input(v, at), at == 1)) {
        r_.module()[v.instruction].inputs[at] = by;
        note_.count(r_.producer(v).op.name());
      }
    }
  }

 private:
  // The constant's numbers in blocks along the depth of a product, its second to last dim, or along rows.
  constexpr value_id stored(value_id reader, value_id w, bool of_product) {
    for (const done& d : done_)
      if (d.from == w && d.of_product == of_product) return d.by;
    const constant_view c = viewed_constant(r_, w);
    layout core = without_repeats(c.at);
    if (of_product) {
      std::swap(core.lens[0], core.lens[1]);
      std::swap(core.strides[0], core.strides[1]);
    }
    const stored_matrix m = store_(reader, laid_out(*c.from, core));
    if (m.operands.empty()) return {};
    const value_id source = origin_of(r_, w);
    small_vector<value_id> operands;
    for (const literal& l : m.operands)
      operands.push_back(operands.empty() ? r_.add_literal(l, {source}) : r_.add_literal(l));
    value_id y = r_.add(m.op, std::move(operands), r_.producer(source).name.view());
    if (of_product) y = r_.add(op::transpose{{1, 0}}, {y});
    y = repeated(r_, y, r_.shape_of(w).lens);
    done_.push_back({w, of_product, y});
    return y;
  }

  rewriter<Module> r_;
  const small_vector<value_id>& readers_;
  Store& store_;
  pass_note& note_;
  // A product's blocks go the other way than a gather's.
  struct done {
    value_id from;
    bool of_product = false;
    value_id by;
  };
  small_vector<done> done_;
};

}  // namespace detail

/// Stores the constant matrices that instructions of `readers_of_matrices` read, of one module, in blocks.
/// `store(reader, matrix)` makes the form of a matrix [rows, depth], a literal of f32, once for all that read it; one
/// without operands leaves the matrix as it is.
template <class Module, class Store>
constexpr pass_note store_weights(Module& m, const small_vector<value_id>& readers, Store&& store) {
  pass_note note("store_weights");
  detail::weight_storer<Module, std::remove_reference_t<Store>>(m, readers, store, note).run();
  return note;
}

}  // namespace kiln
