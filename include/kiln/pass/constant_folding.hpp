#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/op/linear/dot.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/op/sequence/recurrent.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/constants_stay_stored.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// What constant folding may cost.
struct folding_limits {
  /// A larger result stays computed, unless it is no larger than its constants or a contraction reads it.
  std::int64_t bytes = std::int64_t{64} << 20;
  /// Most multiplications of a contraction of constants.
  std::int64_t products = std::int64_t{1} << 28;
};

namespace detail {

template <class Module> class constant_folder {
 public:
  using instruction = typename Module::instruction;

  constexpr constant_folder(Module& m, pass_note& note, const folding_limits& limits)
      : r_(m), limits_(limits), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      if (r_[i].kind != instruction_kind::op || r_.users(i).empty()) continue;
      const op_info& info = r_[i].op.info();
      if (!info.pure || info.kind >= op_kind::control || is_object(r_[i].results[0].type)) continue;
      if (info.kind == op_kind::view)
        fold_view(i);
      else if (info.kind == op_kind::pointwise)
        fold_elements(i);
      else
        fold_any(i);
    }
  }

 private:
  // Contractions pack their constants, and a generic op reads rows: they need the elements in place.
  constexpr bool needs_elements(std::uint32_t i) const {
    for (std::uint32_t u : r_.users(i)) {
      if (u == rewriter<Module>::output_user) return true;
      const op_kind k = r_[u].op.kind();
      if (k == op_kind::contraction || k == op_kind::generic) return true;
    }
    return false;
  }
  // Whether those that need the elements are dots of floats or of bytes, and the constant is their right operand,
  // repeated over a batch: kernels pack what is repeated, and a copy for each of the batch would take as much more
  // memory.
  constexpr bool repeats_for_dots(std::uint32_t i, const layout& at) const {
    if constexpr (!std::is_same_v<typename rewriter<Module>::operation, operation>) return false;
    if (product(without_repeats(at).lens) == product(at.lens)) return false;
    for (std::uint32_t u : r_.users(i)) {
      if (u == rewriter<Module>::output_user || r_[u].op.kind() == op_kind::generic) return false;
      if (r_[u].op.kind() != op_kind::contraction) continue;
      const bool floats = r_.template get_if<op::dot>({u, 0}) && is_float(r_[i].results[0].type);
      if (!floats && !r_.template get_if<op::integer_dot>({u, 0})) return false;
      if (r_.input({u, 0}, 0).instruction == i) return false;
    }
    return true;
  }
  // Whether what reads the value, through views, are dots whose right operand it is.
  constexpr bool only_right_of_dots(std::uint32_t i) const {
    for (std::uint32_t u : r_.users(i)) {
      if (u == rewriter<Module>::output_user) return false;
      const bool right = r_.template get_if<op::dot>({u, 0}) && r_.input({u, 0}, 0).instruction != i;
      if (!right && (r_[u].op.kind() != op_kind::view || !only_right_of_dots(u))) return false;
    }
    return true;
  }
  // Whether the value is only the scales of numbers in blocks.
  constexpr bool only_scales(std::uint32_t i) const {
    for (std::uint32_t u : r_.users(i))
      if (u == rewriter<Module>::output_user || !r_.template get_if<op::block_dequantize>({u, 0}) ||
          r_.input({u, 0}, 1).instruction != i)
        return false;
    return true;
  }
  // See constants_stay_stored.hpp.
  constexpr bool is_widened_late(std::uint32_t i) const {
    if (std::is_constant_evaluated()) return false;
    if constexpr (std::is_same_v<typename rewriter<Module>::operation, operation>) {
      if (!r_.template get_if<op::convert>({i, 0}) || r_[i].results[0].type != dtype::f32) return false;
      const value_id from = r_[i].inputs[0];
      const shape& stored = r_.shape_of(from);
      const constant_view c = viewed_constant(r_, from);  // scales may be a small part of the blocks that they scale
      return (stored.type == dtype::f16 || stored.type == dtype::bf16) && stored.is_constant() && c &&
             bytes_of(c.from->get_shape()) >= static_cast<std::int64_t>(least_late_scales) && constants_stay() &&
             (only_scales(i) ||
              (bytes_of(stored) >= static_cast<std::int64_t>(least_late_bytes) && only_right_of_dots(i)));
    }
    return false;
  }
  // Whether an instruction is of numbers whose blocks are the last of three dims.
  constexpr bool is_of_whole_blocks(std::uint32_t i) const {
    const auto* const blocks = r_.template get_if<op::block_dequantize>({i, 0});
    const dims& lens = r_[i].results[0].lens;
    return blocks && lens.size() == 3 && normal_axis(blocks->axis, 3) == 2 && lens[2] == dimension(blocks->block);
  }
  // Whether a view shows the numbers or the scales of such blocks of a constant, which kernels read where they lie.
  constexpr bool stays_in_blocks(std::uint32_t i) const {
    if (std::is_constant_evaluated()) return false;
    if constexpr (std::is_same_v<typename rewriter<Module>::operation, operation>) {
      if (!constants_stay() || r_[i].results[0].rank() != 3) return false;
      for (const std::uint32_t u : r_.users(i)) {
        if (u == rewriter<Module>::output_user) return false;
        if (is_of_whole_blocks(u)) continue;
        if (!is_widened_late(u) || !only_scales(u)) return false;
        for (const std::uint32_t reader : r_.users(u))
          if (!is_of_whole_blocks(reader)) return false;
      }
      return true;
    }
    return false;
  }
  // Whether kernels that pack a constant from where it lies are all that reads it, through views: products, as their
  // right operand, and recurrent layers.
  constexpr bool only_packed(std::uint32_t i) const {
    for (const std::uint32_t u : r_.users(i)) {
      if (u == rewriter<Module>::output_user) return false;
      const bool product = r_.template get_if<op::dot>({u, 0}), layer = r_.template get_if<op::recurrent>({u, 0});
      if (!product && !layer && (r_[u].op.kind() != op_kind::view || !only_packed(u))) return false;
      for (std::size_t k = 0; (product || layer) && k < r_[u].inputs.size(); ++k)
        if (k != 1 && r_.input({u, 0}, k).instruction == i) return false;
    }
    return true;
  }
  // Whether a view turns a large dense matrix, whose rows are its columns, for such kernels: a copy would be written
  // and read once more. Only who makes kernels for the processor says so, see constants_stay_stored.hpp.
  constexpr bool is_turned_by_kernels(std::uint32_t i, const layout& at) const {
    if (std::is_constant_evaluated()) return false;
    if constexpr (std::is_same_v<typename rewriter<Module>::operation, operation>) {
      const shape& s = r_[i].results[0];
      if (!constants_stay() || s.type != dtype::f32 || s.rank() != 2 || at.dense()) return false;
      const layout turned{{at.lens[1], at.lens[0]}, {at.strides[1], at.strides[0]}, at.offset};
      return turned.dense() && bytes_of(s) >= static_cast<std::int64_t>(least_late_scales) && only_packed(i);
    }
    return false;
  }
  constexpr bool feeds_contraction(std::uint32_t i) const {
    for (std::uint32_t u : r_.users(i))
      if (u != rewriter<Module>::output_user && r_[u].op.kind() == op_kind::contraction) return true;
    return false;
  }
  constexpr bool affordable(std::uint32_t i, std::int64_t bytes, std::int64_t from_bytes) {
    if (bytes <= limits_.bytes || (bytes < most_bytes && (bytes <= from_bytes || feeds_contraction(i)))) return true;
    text t;
    t.append(std::string_view("kept ")).append(r_[i].op.name()).append(std::string_view(" of constants: "));
    t.append(bytes >> 20).append(std::string_view(" MiB of result from "));
    t.append(from_bytes >> 20).append(std::string_view(" MiB"));
    note_.remark(std::move(t));
    return false;
  }
  // Sizes beyond `most_bytes` are as good as infinite: the plan refuses them with the instruction's name.
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
  static constexpr std::int64_t bytes_of(const shape& s) {
    auto n = static_cast<std::int64_t>(size_of(s.type));
    for (dimension d : s.lens)
      if (d == dimension(0)) return 0;
    for (dimension d : s.lens)
      if (__builtin_mul_overflow(n, d.value(), &n) || n > most_bytes) return most_bytes;
    return n;
  }

  constexpr void put(std::uint32_t i, value_id by) {
    note_.count(r_[i].op.name());
    r_.replace({i, 0}, by);
  }

  // Whether other views, no larger, read all there is to read: they are folded through this one.
  constexpr bool only_views_read(std::uint32_t i) const {
    const shape& s = r_[i].results[0];
    for (std::uint32_t u : r_.users(i)) {
      if (u == rewriter<Module>::output_user || r_[u].op.kind() != op_kind::view) return false;
      const shape& out = r_[u].results[0];
      if (!out.is_constant() || bytes_of(out) > bytes_of(s)) return false;
    }
    return true;
  }

  constexpr void fold_view(std::uint32_t i) {
    const shape out = r_[i].results[0];
    if (!out.is_constant()) return;
    const constant_view c = viewed_constant(r_, {i, 0});
    if (!c) {
      // the view needs a copy of what it reads
      const value_id v = r_[i].inputs[0];
      const constant_view inner = viewed_constant(r_, v);
      if (!inner || !is_constant(inner.at.lens)) return;
      const auto at = r_[i].op.map(layout::standard(inner.at.lens));
      if (!at || !at->offset.is_constant()) return;
      if (!affordable(i, bytes_of(r_.shape_of(v)), bytes_of(inner.from->get_shape()))) return;
      put(i, r_.add_literal(laid_out(laid_out(*inner.from, inner.at), *at), r_[i].inputs));
      return;
    }
    if (only_views_read(i) || stays_in_blocks(i) || is_turned_by_kernels(i, c.at)) return;
    const std::int64_t from = bytes_of(c.from->get_shape());
    if (bytes_of(out) > from &&
        (!needs_elements(i) || repeats_for_dots(i, c.at) || !affordable(i, bytes_of(out), from)))
      return;
    put(i, r_.add_literal(laid_out(*c.from, c.at), r_[i].inputs));
  }

  constexpr void fold_elements(std::uint32_t i) {
    if (is_widened_late(i)) return;
    std::int64_t from = 0;
    for (value_id v : r_[i].inputs) {
      const constant_view c = viewed_constant(r_, v);
      if (!c) return;
      from += bytes_of(c.from->get_shape());
    }
    const dtype t = r_[i].results[0].type;
    const auto op = r_[i].op;
    const auto operands = r_[i].inputs;
    value_id by = fold_pointwise(r_, op, operands, std::numeric_limits<std::int64_t>::max() >> 8);
    if (!by) return;
    const constant_view c = viewed_constant(r_, by);
    if (!affordable(i, bytes_of(c.from->get_shape()), from)) return;
    const shape full(t, r_[i].results[0].lens);
    if (!r_.constant(by) && full.is_constant() && needs_elements(i) && !repeats_for_dots(i, c.at) &&
        affordable(i, bytes_of(full), from))
      by = r_.add_literal(laid_out(*c.from, c.at), operands);
    put(i, by);
  }

  constexpr void fold_any(std::uint32_t i) {
    if (const auto* f = r_[i].op.template get_if<op::fill>()) return fold_fill(i, *f);
    std::int64_t from = 0, viewed = 0, made = 0;  // bytes: of constants, of what is seen of them, of the results
    small_vector<literal> values;
    for (const shape& s : r_[i].results) {
      if (!s.is_constant()) return;
      made += bytes_of(s);
    }
    small_vector<constant_view> views;
    for (value_id v : r_[i].inputs) {
      views.push_back(viewed_constant(r_, v));
      if (!views.back() || !is_constant(views.back().at.lens)) return;
      const shape& whole = views.back().from->get_shape();
      const std::int64_t bytes = bytes_of(whole), seen = bytes_of({whole.type, without_repeats(views.back().at).lens});
      from += bytes, viewed += seen < bytes ? seen : bytes;
    }
    if (stays_stored(i, made, viewed) || !affordable(i, made, from) || !few_products(i)) return;
    for (const constant_view& c : views) {
      if (!affordable(i, bytes_of({c.from->get_shape().type, c.at.lens}), from)) return;
      values.push_back(laid_out(*c.from, c.at));
    }
    small_vector<const literal*> pointers;
    for (const literal& l : values) pointers.push_back(&l);
    auto literals = fold(r_[i].op, std::span<const literal* const>(pointers.data(), pointers.size()), r_[i].results);
    if (literals.empty()) return;
    note_.count(r_[i].op.name());
    for (std::uint32_t k = 0; k < literals.size(); ++k)
      r_.replace({i, k}, r_.add_literal(std::move(literals[k]), r_[i].inputs));
  }

  // Floats that a generic op reads of stored integers take less memory as those, and kernels read them as they are.
  constexpr bool stays_stored(std::uint32_t i, std::int64_t bytes, std::int64_t stored_bytes) {
    constexpr std::int64_t small = 4096;
    const auto& ins = r_[i];
    if (ins.op.kind() != op_kind::generic || ins.inputs.empty() || stored_bytes < small || bytes <= stored_bytes)
      return false;
    const dtype stored = r_.shape_of(ins.inputs[0]).type;
    if (!(is_integer(stored) || is_narrow(stored)) || !is_float(ins.results[0].type)) return false;
    text t;
    t.append(std::string_view("kept ")).append(ins.op.name());
    note_.remark(std::move(t.append(std::string_view(" of constants: they stay as small as they are stored"))));
    return true;
  }

  // A filled tensor is a broadcast scalar, whatever its extents.
  constexpr void fold_fill(std::uint32_t i, op::fill f) {
    value_id by = r_.add_literal(literal::scalar(f.type, f.value));
    const std::int64_t bytes = f.lens.empty() || !is_constant(f.lens) ? 0 : bytes_of({f.type, f.lens});
    if (bytes && needs_elements(i) && affordable(i, bytes, 0))
      by = r_.add_literal(laid_out(r_[by.instruction].constant, {f.lens, dims(f.lens.size(), dimension(0)), 0}));
    else if (!f.lens.empty())
      by = r_.add(op::multibroadcast{f.lens}, {by});
    put(i, by);
  }

  constexpr bool few_products(std::uint32_t i) {
    if (r_[i].op.kind() != op_kind::contraction) return true;
    shapes in;
    for (value_id v : r_[i].inputs) in.push_back(r_.shape_of(v));
    const auto c = r_[i].op.maps(in);
    if (!c) return false;
    std::int64_t n = 1;
    for (dimension d : c->extents) n = n > limits_.products ? n : n * d.value();
    if (n <= limits_.products) return true;
    text t;
    note_.remark(std::move(t.append(std::string_view("kept "))
                               .append(r_[i].op.name())
                               .append(std::string_view(" of constants: it takes too many products to compute here"))));
    return false;
  }

  rewriter<Module> r_;
  const folding_limits& limits_;
  pass_note& note_;
};

}  // namespace detail

/// Computes every pure op whose operands are constants through its own reference computation, ops without operands
/// included. A broadcast constant stays small: pointwise ops are computed where their operands vary, and a broadcast is
/// written out only for the ops that read elements in place.
template <class Program> constexpr pass_note constant_folding(Program& p, const folding_limits& limits = {}) {
  return run_on_modules<detail::constant_folder>("constant_folding", p, limits);
}

}  // namespace kiln
