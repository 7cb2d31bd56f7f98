#pragma once
#include <algorithm>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/integers.hpp"

/// The epilogue of integer products, for one unit.
namespace kiln::eigen::integer_epilogues {

inline constexpr std::size_t none = ~std::size_t{0};

// An input of the instruction that is added to the sums, as a bias, or subtracted, as what a zero point contributes.
struct integer_addend {
  std::size_t input = none;
  std::int32_t sign = 1;
};

// The epilogue of an integer product as the kernel runs it: the sums and `addends`, which are the result, or which are
// converted to floats, then `floats` over those.
struct integer_form {
  std::vector<integer_addend> addends;
  bool sums = false;                     // are the result
  std::vector<std::size_t> operands;     // inputs of the instruction: parameters 1, 2, … of `floats`
  std::unique_ptr<tile_program> floats;  // null where the result is the converted sum
  std::int64_t columns = 0;              // over which `floats` run together
  std::uint32_t converted = 0;           // the instruction of the epilogue that makes floats of the sums
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

// Columns that floats run over together at most, and the memory that they may take then: a worker's stack holds it.
inline constexpr std::int64_t most_columns = 256;
inline constexpr std::size_t stack_bytes = 32 * 1024;

inline std::optional<integer_form> find_form(const lower::contraction_body<module_graph>& body) {
  const module_graph& epilogue = body.epilogue;
  integer_form form;
  std::vector<std::size_t> input(epilogue.size(), none);
  std::size_t parameters = 0;
  for (std::uint32_t i = 0; i < epilogue.size(); ++i)
    if (epilogue[i].kind == instruction_kind::parameter && parameters++ > 0)
      input[i] = body.epilogue_inputs[parameters - 2];
  std::uint32_t sum = 0;
  while (epilogue[sum].kind != instruction_kind::parameter) ++sum;
  std::uint32_t whole = sum;  // of all addends so far
  std::vector<bool> taken(epilogue.size(), false);
  auto user = only_user(epilogue, whole);
  while (user && (epilogue[*user].op.is<op::add>() || epilogue[*user].op.is<op::sub>())) {
    const auto& in = epilogue[*user].inputs;
    const bool first = in[0].instruction == whole;
    const std::uint32_t other = in[first ? 1 : 0].instruction;
    const bool adds = epilogue[*user].op.is<op::add>();
    if (input[other] == none || only_user(epilogue, other) != user || !(adds || first)) break;
    form.addends.push_back({input[other], adds ? 1 : -1});
    taken[whole] = taken[other] = true;
    user = only_user(epilogue, whole = *user);
  }
  taken[whole] = true;
  form.sums = !form.addends.empty() && epilogue.outputs.size() == 1 && epilogue.outputs[0].instruction == whole;
  if (form.sums) return form;
  if (!user || !epilogue[*user].op.is<op::convert>() || epilogue[*user].results[0].type != dtype::f32)
    return std::nullopt;
  const std::uint32_t first = form.converted = *user;
  taken[first] = true;
  const std::uint32_t last = epilogue.outputs[0].instruction;
  if (last == first) return form;

  for (std::uint32_t i = 0; i < epilogue.size(); ++i)
    if (!taken[i] && input[i] != none) form.operands.push_back(input[i]);
  form.floats =
      std::make_unique<tile_program>(lower::module_after(epilogue, first, [&](std::uint32_t i) { return !taken[i]; }));
  constexpr std::int64_t least_columns = 16;
  for (form.columns = most_columns; form.floats->scratch_bytes(form.columns) > stack_bytes; form.columns /= 2)
    if (form.columns == least_columns) return std::nullopt;
  return form;
}

struct beside : operand_rows {
  bool repeats = false;  // every row is the same, and no single value
};

// Runs a form's floats over parts of a product and stores what they give.
class float_epilogue {
 public:
  float_epilogue(const integer_form& form, std::span<const tensor> inputs, const tensor& out) : form_(form) {
    const std::size_t rank = out.rank();
    for (std::size_t d = 0; d + 1 < rank; ++d) row_lens_.push_back(out.lens[d]);
    for (const std::size_t i : form.operands) operands_.push_back(beside{operand_rows::of(inputs[i], out, 1).value()});
    target_ = beside{operand_rows::of(out, out, 1).value()};
    joined_rows_ = rows_together(out.lens[rank - 1]);
  }
  static bool fits(const tensor& out) { return out.rank() >= 1 && out.strides.back() == 1; }

  void apply(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
             std::ptrdiff_t c_row) const {
    alignas(64) std::byte scratch[stack_bytes];
    std::optional<tile_program::cursor> cursor;
    if (form_.floats) cursor.emplace(*form_.floats, scratch, form_.columns);
    ints at = row_lens_;
    std::int64_t rest = row0;
    for (std::size_t d = at.size(); d-- > 0; rest /= row_lens_[d]) at[d] = rest % row_lens_[d];
    if (cursor && joined_rows_ > 1 && c_row == cols && cols == columns_) {
      alignas(64) std::byte repeated[most_repeated][most_columns * sizeof(float)];
      return apply_joined(*cursor, repeated, at, rows, c);
    }
    for (std::int64_t r = 0; r < rows; ++r, next_index(at, row_lens_)) {
      const std::int64_t each = cursor ? form_.columns : cols;
      for (std::int64_t from = 0; from < cols; from += each) {
        const std::int64_t count = std::min(each, cols - from);
        std::byte* const values = reinterpret_cast<std::byte*>(c + r * c_row + from);
        std::byte* const to = target_.at(at, col0 + from);
        if (!cursor) {
          std::copy_n(values, count * static_cast<std::int64_t>(sizeof(float)), to);
          continue;
        }
        cursor->parameter(0) = {values, 1};
        for (std::size_t k = 0; k < operands_.size(); ++k)
          cursor->parameter(k + 1) = {operands_[k].at(at, col0 + from), operands_[k].step};
        cursor->result(0) = {to, 1};
        cursor->run(0, 0, count);
      }
    }
  }

 private:
  static constexpr std::size_t most_repeated = 6;

  // Short adjacent rows run together, so that blocks are wide: how many.
  std::int64_t rows_together(std::int64_t columns) {
    columns_ = columns;
    std::size_t repeated = 0;
    const auto follows = [&](const beside& b) {
      std::int64_t expected = columns;
      for (std::size_t d = row_lens_.size(); d-- > 0; expected *= row_lens_[d])
        if (row_lens_[d] != 1 && b.steps[d] != expected) return false;
      return b.step == 1;
    };
    for (beside& b : operands_) {
      if (follows(b)) continue;
      for (std::size_t d = 0; d < b.steps.size(); ++d)
        if (row_lens_[d] != 1 && b.steps[d] != 0) return 1;
      b.repeats = b.step != 0;
      if (b.repeats && (b.width > 4 || b.step != 1 || ++repeated > most_repeated)) return 1;
    }
    return columns > 0 && follows(target_) ? form_.columns / columns : 1;
  }
  void apply_joined(tile_program::cursor& cursor, std::byte (*repeated)[most_columns * sizeof(float)], const ints& at,
                    std::int64_t rows, float* c) const {
    const std::int64_t each = std::min(joined_rows_, rows);
    std::size_t used = 0;
    inline_vector<std::byte*, 40> data;
    for (const beside& b : operands_) {
      std::byte* from = b.at(at, 0);
      if (b.repeats) {
        std::byte* const to = repeated[used++];
        for (std::int64_t r = 0; r < each; ++r) std::copy_n(from, columns_ * b.width, to + r * columns_ * b.width);
        from = to;
      }
      data.push_back(from);
    }
    std::byte* to = target_.at(at, 0);
    for (std::int64_t r = 0; r < rows; r += each) {
      const std::int64_t count = std::min(each, rows - r) * columns_;
      cursor.parameter(0) = {reinterpret_cast<std::byte*>(c + r * columns_), 1};
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        cursor.parameter(k + 1) = {data[k], operands_[k].step};
        if (operands_[k].step != 0 && !operands_[k].repeats) data[k] += count * operands_[k].width;
      }
      cursor.result(0) = {to, 1};
      cursor.run(0, 0, count);
      to += count * target_.width;
    }
  }

  const integer_form& form_;
  ints row_lens_;
  inline_vector<beside, 40> operands_;
  beside target_{};
  std::int64_t columns_ = 0, joined_rows_ = 1;
};

}  // namespace kiln::eigen::integer_epilogues
