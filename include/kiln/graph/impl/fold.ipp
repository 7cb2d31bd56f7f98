#include <algorithm>
#include <optional>

#include "kiln/core/object.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/graph/fold.hpp"

namespace kiln::detail {
namespace {

// Sums of a few results, in the order of the reference computation, whose bits they have: `evaluate_contraction` adds
// in double, too. Their number is fixed, so that they stay in registers.
class few_sums {
 public:
  static constexpr std::int64_t many = 16;

  void add(float x, const float* y) {
    const doubles factor = broadcast<doubles>(x);
#pragma GCC unroll 4
    for (int i = 0; i < lines; ++i) {
      const auto line = load<vec<float, 4>>(y + 4 * i);
      sums_[2 * i] += factor * __builtin_convertvector(lower_half(line), doubles);
      sums_[2 * i + 1] += factor * __builtin_convertvector(upper_half(line), doubles);
    }
  }
  void put(float* to) const {
    for (int i = 0; i < many; ++i) to[i] = static_cast<float>(sums_[i / 2][i % 2]);
  }

 private:
  using doubles = vec<double, 2>;
  static constexpr int lines = many / 4;
  doubles sums_[many / 2] = {};
};

// What many sums of a contraction have in common: an operand whose elements lie side by side as the results do, and
// one of which all of them read the same element.
struct side_by_side {
  linear_access row;                                        // of the first of these operands
  linear_access other;                                      // of the second
  linear_access out;                                        // of the results
  const float* row_at;                                      // what `row` reads
  const float* other_at;                                    // what `other` reads
  inline_vector<std::int64_t, max_iteration_rank> extents;  // of the iteration: results first, then what is summed
  std::size_t outer;                                        // how many of the extents are the results'
  std::size_t along;  // the one of them along which results and elements of the row lie side by side
};

std::optional<side_by_side> sums_side_by_side(const operation& op, const small_vector<evaluation::operand>& in,
                                              const small_vector<evaluation::operand>& out) {
  if (op.kind() != op_kind::contraction || in.size() != 2) return std::nullopt;
  for (const evaluation::operand& o : {in[0], in[1], out[0]})
    if (o.type.type != dtype::f32) return std::nullopt;
  const shape types[] = {in[0].type, in[1].type};
  const result<contraction> c = op.maps(types);
  if (!c || c->reduced == 0) return std::nullopt;
  side_by_side s;
  for (const dimension d : c->extents) {
    if (d == dimension(0)) return std::nullopt;
    s.extents.push_back(d.value());
  }
  s.outer = s.extents.size() - c->reduced;
  const linear_access left = linearize(c->lhs, to_ints(in[0].type.lens), s.extents),
                      right = linearize(c->rhs, to_ints(in[1].type.lens), s.extents);
  s.out = linearize(c->out, to_ints(out[0].type.lens), s.extents);
  if (!left.guards.empty() || !right.guards.empty()) return std::nullopt;
  for (s.along = 0; s.along < s.outer; ++s.along) {
    const std::int64_t l = left.step[s.along], r = right.step[s.along];
    if (s.out.step[s.along] != 1 || l + r != 1 || l * r != 0 || s.extents[s.along] < few_sums::many) continue;
    const bool is_right = r == 1;
    s.row = is_right ? right : left, s.other = is_right ? left : right;
    s.row_at = reinterpret_cast<const float*>(in[is_right ? 1 : 0].bytes);
    s.other_at = reinterpret_cast<const float*>(in[is_right ? 0 : 1].bytes);
    return s;
  }
  return std::nullopt;
}

// Moves on among the dims [from, to) but for the one along which results lie; false after the last.
bool next_of(inline_vector<std::int64_t, max_iteration_rank>& at, const side_by_side& s, std::size_t from,
             std::size_t to) {
  for (std::size_t d = to; d-- > from;) {
    if (d == s.along) continue;
    if (++at[d] < s.extents[d]) return true;
    at[d] = 0;
  }
  return false;
}

void add_side_by_side(const side_by_side& s, float* to) {
  inline_vector<std::int64_t, max_iteration_rank> at;
  at.resize(s.extents.size());
  const std::size_t inner = s.extents.size() - 1;
  const auto offset = [&](const linear_access& a, std::size_t upto) {
    std::int64_t n = a.offset;
    for (std::size_t d = 0; d < upto; ++d)
      if (d != s.along) n += a.step[d] * at[d];
    return n;
  };
  const std::int64_t row_step = s.row.step[inner], other_step = s.other.step[inner];
  // Columns of the row stay in the cache. The last ones end where the row does, and some are computed twice.
  for (std::int64_t first = 0; first < s.extents[s.along]; first += few_sums::many) {
    const std::int64_t j = std::min(first, s.extents[s.along] - few_sums::many);
    do {
      few_sums sums;
      do {
        const float* row = s.row_at + offset(s.row, inner) + j;
        const float* other = s.other_at + offset(s.other, inner);
        for (std::int64_t k = 0; k < s.extents[inner]; ++k) sums.add(other[k * other_step], row + k * row_step);
      } while (next_of(at, s, s.outer, inner));
      sums.put(to + offset(s.out, s.outer) + j);
    } while (next_of(at, s, 0, s.outer));
  }
}

}  // namespace

// At run time operands and results are bytes (no conversion where dtype and compute type agree), and an undecidable
// comparison of dimensions, or an expression beyond all bounds, arrives as an exception.
small_vector<literal> fold_at_run_time(const operation& op, small_vector<evaluation::operand>& in,
                                       small_vector<evaluation::operand>& out, bool symbolic) try {
  if (symbolic) {
    evaluation e(in, out);
    op.evaluate(e, true);
    return e.literals();
  }
  small_vector<argument> operands;
  small_vector<buffer> results;
  for (evaluation::operand& o : in) {
    operands.push_back(argument(*o.constant));
    o.bytes = operands.back().data();
  }
  for (evaluation::operand& o : out) {
    results.push_back(buffer::allocate(static_cast<std::size_t>(o.type.bytes().value())));
    o.bytes = results.back().data();
  }
  if (const auto sums = sums_side_by_side(op, in, out)) {
    add_side_by_side(*sums, reinterpret_cast<float*>(out[0].bytes));
  } else {
    evaluation e(in, out);
    op.evaluate(e, false);
    e.finish();
  }
  small_vector<literal> literals;
  for (std::size_t k = 0; k < out.size(); ++k)
    literals.push_back(is_object(out[k].type.type) ? retained(out[k].type, results[k].data()).to_literal()
                                                   : literal(out[k].type, results[k]));
  return literals;
} catch (const error& e) {
  if (symbolic && (e.code() == errc::unsupported || e.code() == errc::limit)) return {};
  throw;
}

small_vector<literal> produce_literals(const operation& op, std::span<const literal* const> inputs) {
  small_vector<argument> in;
  for (const literal* l : inputs) {
    if (l->has_symbols()) return {};
    in.push_back(argument(*l));
  }
  small_vector<literal> out;
  for (const argument& a : op.produce(in)) out.push_back(a.to_literal());
  return out;
}

}  // namespace kiln::detail
