#pragma once
#include <algorithm>

#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/tile_program.hpp"
#include "kiln/runtime/contraction_parts.hpp"

/// What follows integer products, for one unit.
namespace kiln::eigen::integer_tails {

inline constexpr std::size_t none = ~std::size_t{0};

// An input of the instruction that is added to the sums, as a bias, or subtracted, as what a zero point contributes.
struct integer_addend {
  std::size_t input = none;
  std::int32_t sign = 1;
};

// The tail of an integer product as the kernel runs it: the sums and `addends`, converted to floats, then `floats` over
// those.
struct integer_form {
  std::vector<integer_addend> addends;
  std::vector<std::size_t> operands;     // inputs of the instruction: parameters 1, 2, … of `floats`
  std::unique_ptr<tile_program> floats;  // null where the result is the converted sum
};

// The only instruction that reads `v`; none where several do, or an output.
inline std::optional<std::uint32_t> only_user(const module_graph& m, std::uint32_t v) {
  std::optional<std::uint32_t> user;
  for (const value_id out : m.outputs)
    if (out.instruction == v) return std::nullopt;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    for (const value_id in : m[i].inputs) {
      if (in.instruction != v) continue;
      if (user) return std::nullopt;
      user = i;
    }
  return user;
}

inline std::optional<integer_form> find_form(const contraction_parts& parts) {
  const module_graph& tail = parts.tail;
  integer_form form;
  std::vector<std::size_t> input(tail.size(), none);
  std::size_t parameters = 0;
  for (std::uint32_t i = 0; i < tail.size(); ++i)
    if (tail[i].kind == instruction_kind::parameter && parameters++ > 0) input[i] = parts.extra[parameters - 2];
  std::uint32_t sum = 0;
  while (tail[sum].kind != instruction_kind::parameter) ++sum;
  std::uint32_t whole = sum;  // of all addends so far
  std::vector<bool> taken(tail.size(), false);
  auto user = only_user(tail, whole);
  while (user && (tail[*user].op.is<op::add>() || tail[*user].op.is<op::sub>())) {
    const auto& in = tail[*user].inputs;
    const bool first = in[0].instruction == whole;
    const std::uint32_t other = in[first ? 1 : 0].instruction;
    const bool adds = tail[*user].op.is<op::add>();
    if (input[other] == none || only_user(tail, other) != user || !(adds || first)) break;
    form.addends.push_back({input[other], adds ? 1 : -1});
    taken[whole] = taken[other] = true;
    user = only_user(tail, whole = *user);
  }
  taken[whole] = true;
  if (!user || !tail[*user].op.is<op::convert>() || tail[*user].results[0].type != dtype::f32) return std::nullopt;
  const std::uint32_t first = *user;
  taken[first] = true;
  const std::uint32_t last = tail.outputs[0].instruction;
  if (last == first) return form;

  module_graph floats;
  std::vector<value_id> of(tail.size());
  of[first] = floats.add_parameter("sum", tail[first].results[0]);
  for (std::uint32_t i = 0; i < tail.size(); ++i) {
    const auto& ins = tail[i];
    if (taken[i]) continue;
    if (ins.kind == instruction_kind::literal) {
      of[i] = floats.add_literal(ins.constant);
    } else if (ins.kind == instruction_kind::parameter) {
      of[i] = floats.add_parameter(ins.name, ins.results[0]);
      form.operands.push_back(input[i]);
    } else {
      small_vector<value_id> inputs;
      for (value_id v : ins.inputs) inputs.push_back(of[v.instruction]);
      of[i] = floats.add_with_shapes(ins.op, inputs, ins.results);
    }
  }
  floats.outputs.push_back(of[last]);
  form.floats = std::make_unique<tile_program>(floats);
  return form;
}

// Where an operand lies beside a result whose last dim is columns.
struct beside {
  std::byte* data;
  std::int64_t width;
  ints steps;  // along the dims before the columns
  std::int64_t step;
};

inline constexpr std::int64_t most_columns = 256;
inline constexpr std::size_t stack_bytes = 32 * 1024;

// Runs a form's floats over parts of a product and stores what they give.
class float_tail {
 public:
  float_tail(const integer_form& form, std::span<const tensor> inputs, const tensor& out) : form_(form) {
    const std::size_t rank = out.rank();
    for (std::size_t d = 0; d + 1 < rank; ++d) row_lens_.push_back(out.lens[d]);
    for (const std::size_t i : form.operands) operands_.push_back(lying(inputs[i], rank));
    target_ = lying(out, rank);
  }
  static bool fits(const integer_form& form, const tensor& out) {
    return out.rank() >= 1 && out.strides.back() == 1 &&
           (!form.floats || form.floats->scratch_bytes(most_columns) <= stack_bytes);
  }

  void apply(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
             std::ptrdiff_t c_row) const {
    alignas(64) std::byte scratch[stack_bytes];
    std::optional<tile_program::cursor> cursor;
    if (form_.floats) cursor.emplace(*form_.floats, scratch, std::min(most_columns, cols));
    ints at = row_lens_;
    std::int64_t rest = row0;
    for (std::size_t d = at.size(); d-- > 0; rest /= row_lens_[d]) at[d] = rest % row_lens_[d];
    for (std::int64_t r = 0; r < rows; ++r, next_index(at, row_lens_)) {
      for (std::int64_t from = 0; from < cols; from += most_columns) {
        const std::int64_t count = std::min(most_columns, cols - from);
        std::byte* const values = reinterpret_cast<std::byte*>(c + r * c_row + from);
        std::byte* const to = place(target_, at, col0 + from);
        if (!cursor) {
          std::copy_n(values, count * static_cast<std::int64_t>(sizeof(float)), to);
          continue;
        }
        cursor->parameter(0) = {values, 1};
        for (std::size_t k = 0; k < operands_.size(); ++k)
          cursor->parameter(k + 1) = {place(operands_[k], at, col0 + from), operands_[k].step};
        cursor->result(0) = {to, 1};
        cursor->run(0, 0, count);
      }
    }
  }

 private:
  static beside lying(const tensor& t, std::size_t rank) {
    beside b{t.data, static_cast<std::int64_t>(size_of(t.type)), {}, 0};
    const auto step_of = [&](std::size_t d) { return t.lens[d] == 1 ? 0 : t.strides[d]; };
    for (std::size_t d = 0; d + 1 < rank; ++d) b.steps.push_back(step_of(d));
    b.step = step_of(rank - 1);
    return b;
  }
  static std::byte* place(const beside& b, const ints& at, std::int64_t col) {
    std::int64_t offset = col * b.step;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * b.steps[d];
    return b.data + offset * b.width;
  }

  const integer_form& form_;
  ints row_lens_;
  inline_vector<beside, 40> operands_;
  beside target_{};
};

}  // namespace kiln::eigen::integer_tails
