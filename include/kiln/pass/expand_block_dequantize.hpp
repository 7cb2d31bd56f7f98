#pragma once
#include <optional>

#include "kiln/graph/rewriter.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// Writes `block_dequantize` as ops of the default registry.
template <class Module> class block_expander {
 public:
  using kept_instructions = small_vector<std::uint32_t> (*)(const Module&);

  constexpr block_expander(Module& m, pass_note& note, bool of_constants = true, kept_instructions kept = nullptr)
      : r_(m), note_(note), of_constants_(of_constants) {
    if (kept) kept_ = kept(m);
  }

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto* found = r_.template get_if<op::block_dequantize>({i, 0});
      if (!found || (!of_constants_ && all_constant(i)) || is_kept(i)) continue;
      const op::block_dequantize stored = *found;
      const value_id by = real_numbers(stored, i);
      r_.replace({i, 0}, by);
      note_.count("block_dequantize");
    }
  }

 private:
  constexpr bool is_kept(std::uint32_t i) const {
    for (const std::uint32_t k : kept_)
      if (k == i) return true;
    return false;
  }
  // Whether folding computes all operands.
  constexpr bool all_constant(std::uint32_t i) const {
    for (const value_id v : r_[i].inputs) {
      const auto& from = r_.producer(v);
      if (from.kind == instruction_kind::literal) continue;
      if (from.kind != instruction_kind::op || from.op.kind() >= op_kind::control || from.inputs.empty() ||
          !all_constant(v.instruction))
        return false;
    }
    return true;
  }
  constexpr value_id real_numbers(const op::block_dequantize& stored, std::uint32_t i) {
    const small_vector<value_id> in = r_[i].inputs;
    const shape result = r_[i].results[0];
    const auto axis = static_cast<std::size_t>(normal_axis(stored.axis, result.rank()));
    value_id x = fields(in[0], stored.bits, result.lens);
    x = stored.floats ? floats_of(x, result.type) : as(x, result.type);
    if (in.size() > 2) {
      const bool packed = !is_float(r_.shape_of(in[2]).type);
      const value_id zeros = packed ? fields(in[2], stored.bits, r_.shape_of(in[1]).lens) : in[2];
      x = r_.add(op::sub{}, {x, of_blocks(as(zeros, result.type), axis, stored.block, result.lens)});
    } else if (stored.zero != 0) {
      const value_id zero = r_.add_literal(literal::scalar(result.type, static_cast<double>(stored.zero)));
      x = r_.add(op::sub{}, {x, r_.add(op::multibroadcast{result.lens}, {zero})});
    }
    x = r_.add(op::mul{}, {x, of_blocks(as(in[1], result.type), axis, stored.block, result.lens)});
    if (stored.factor == 1) return x;
    const value_id factor = r_.add_literal(literal::scalar(result.type, static_cast<double>(stored.factor)));
    return r_.add(op::mul{}, {x, r_.add(op::multibroadcast{result.lens}, {factor})});
  }
  // What codes of f4e2m1 mean: there are sixteen.
  constexpr value_id floats_of(value_id codes, dtype t) {
    small_vector<float> all;
    for (std::uint8_t code = 0; code < 16; ++code) {
      float4_e2m1 number;
      number.bits = code;
      all.push_back(static_cast<float>(number));
    }
    return r_.add(op::gather{0}, {r_.add_literal(literal::of<float>(shape(t, {16}), all)), as(codes, dtype::i32)});
  }
  constexpr value_id as(value_id x, dtype t) { return r_.shape_of(x).type == t ? x : r_.add(op::convert{t}, {x}); }
  // The first `lens` numbers of bytes that have fields of `bits` bits along the last dim, the lowest first.
  constexpr value_id fields(value_id bytes, std::int64_t bits, const dims& lens) {
    if (bits == 8) return cut(bytes, lens);
    const std::int64_t each = fields_per_byte(bits);
    dims apart = r_.shape_of(bytes).lens, together = apart;
    const auto last = static_cast<std::int64_t>(apart.size());
    apart.push_back(each);
    together[together.size() - 1] *= each;
    small_vector<std::int64_t> shifts;
    for (std::int64_t k = 0; k < each; ++k) shifts.push_back(k * bits);
    const value_id shift = r_.add_literal(literal::of<std::int64_t>(shape(dtype::u32, {each}), shifts));
    const value_id mask = r_.add_literal(literal::scalar(dtype::u32, (std::int64_t{1} << bits) - 1));
    value_id x = r_.add(op::unsqueeze{{last}}, {as(bytes, dtype::u32)});
    x = r_.add(op::multibroadcast{apart}, {x});
    x = r_.add(op::shift_right{}, {x, r_.add(op::multibroadcast{apart}, {shift})});
    x = r_.add(op::bitwise_and{}, {x, r_.add(op::multibroadcast{apart}, {mask})});
    return cut(r_.add(op::reshape{together}, {x}), lens);
  }
  // One number of each block, repeated for its elements.
  constexpr value_id of_blocks(value_id x, std::size_t axis, std::int64_t block, const dims& lens) {
    dims apart, together = r_.shape_of(x).lens;
    for (std::size_t d = 0; d < together.size(); ++d) {
      apart.push_back(together[d]);
      if (d == axis) apart.push_back(block);
    }
    together[axis] *= block;
    x = r_.add(op::unsqueeze{{static_cast<std::int64_t>(axis) + 1}}, {x});
    return cut(r_.add(op::reshape{together}, {r_.add(op::multibroadcast{apart}, {x})}), lens);
  }
  // The first `lens` elements.
  constexpr value_id cut(value_id x, const dims& lens) {
    op::slice part;
    const dims& from = r_.shape_of(x).lens;
    for (std::size_t d = 0; d < lens.size(); ++d) {
      if (from[d] == lens[d]) continue;
      part.axes.push_back(static_cast<std::int64_t>(d));
      part.starts.push_back(0);
      part.ends.push_back(lens[d]);
    }
    return part.axes.empty() ? x : r_.add(part, {x});
  }

  rewriter<Module> r_;
  pass_note& note_;
  bool of_constants_;
  small_vector<std::uint32_t> kept_;
};

}  // namespace detail

/// Writes `block_dequantize` as arithmetic, for targets and formats that know nothing of numbers stored in blocks; or,
/// not `of_constants`, where what it reads is of a run, for targets that read such constants alone as they are stored.
template <class Program> constexpr pass_note expand_block_dequantize(Program& p, bool of_constants = true) {
  return run_on_modules<detail::block_expander>("expand_block_dequantize", p, of_constants);
}

/// The program with `block_dequantize` written as arithmetic, but for the instructions of a module that `kept` lists;
/// empty where it has none.
std::optional<program> without_block_dequantize(const program& p,
                                                small_vector<std::uint32_t> (*kept)(const module_graph&) = nullptr);

}  // namespace kiln
