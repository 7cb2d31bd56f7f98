#include <algorithm>
#include <array>

#include "kiln/backend/eigen/impl/int8/dequantized_byte.hpp"
#include "kiln/backend/eigen/impl/int8/requantization_form.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using namespace integer_epilogues;

bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }

// A pointwise body from bytes of one size to bytes: its parameters, each of which the results have an element of.
struct byte_body {
  std::vector<std::uint32_t> parameters;

  static std::optional<byte_body> of(const module_graph& m, const kernel_request& r) {
    byte_body out;
    if (m.outputs.size() != 1 || r.instruction.results.size() != 1) return std::nullopt;
    const shape& made = r.instruction.results[0];
    if (!is_byte(made.type)) return std::nullopt;
    for (const shape& s : r.inputs)
      if (!is_byte(s.type) || !(s.lens == made.lens)) return std::nullopt;
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind == instruction_kind::parameter) {
        out.parameters.push_back(i);
      } else if (m[i].kind == instruction_kind::op) {
        const bool repeats = m[i].op.kind() == op_kind::view && repeated_constant(m, {i, 0}).has_value();
        if (!repeats && m[i].op.kind() != op_kind::pointwise) return std::nullopt;
      }
    }
    if (out.parameters.size() != r.inputs.size()) return std::nullopt;
    return out;
  }
};

// Whether an operand is one value for each of the result's innermost rows.
bool repeats_along_rows(const kernel_request& r, std::size_t k) {
  const auto& made = r.graph.producer(r.instruction.inputs[k]);
  if (made.kind != instruction_kind::op || !made.op.is<op::multibroadcast>()) return false;
  const dims& from = r.graph.shape_of(made.inputs[0]).lens;
  return from.empty() || from.back() == dimension(1);
}

// The operand of bytes among values that its rows have one of each, if the body makes one result of bytes.
std::optional<std::size_t> byte_beside_row_values(const module_graph& m, const kernel_request& r) {
  if (m.outputs.size() != 1 || r.inputs.size() < 2) return std::nullopt;
  const shape& made = r.instruction.results[0];
  if (!is_byte(made.type) || made.rank() == 0) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t k = 0; k < r.inputs.size(); ++k) {
    if (!(r.inputs[k].lens == made.lens)) return std::nullopt;
    if (repeats_along_rows(r, k)) continue;
    if (found || !is_byte(r.inputs[k].type)) return std::nullopt;
    found = k;
  }
  return found;
}

// The pointwise kernel of such a body, which bytes that lie together in one order pass through in another way: a
// function of one byte is a table of what the body makes of each, a function of two that is a requantization is one.
// A function of a byte and of values that a row has one of each is a table for each row, where rows are long.
class byte_pointwise_kernel final : public kernel {
 public:
  byte_pointwise_kernel(const module_graph& body, std::string name)
      : program_(body), rows_(make_rows_kernel(body, name)), name_(std::move(name)) {}

  /// Whether there is a table now: not where the body is of single elements.
  bool tabulate() {
    if (program_.levels() != 1 || !program_.full_parameter(0) || !program_.full_result(0)) return false;
    std::array<std::uint8_t, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
    buffer scratch = buffer::allocate(program_.scratch_bytes(256));
    tile_program::cursor one(program_, scratch.data(), 256);
    one.parameter(0) = {reinterpret_cast<std::byte*>(all.data()), 1};
    fill(one, table_);
    return has_table_ = true;
  }
  /// Parameter k is the byte.
  bool tabulate_rows(std::size_t k) {
    if (program_.levels() != 1 || !program_.full_parameter(k) || !program_.full_result(0)) return false;
    byte_ = k;
    return true;
  }
  void combine(kernels::byte_combination how, const requantization_form& form) {
    combines_ = true;
    form_ = form;
    for (std::vector<float>* v : {&form_.scale, &form_.bias, &form_.late_bias})
      if (!v->empty()) v->assign(kernels::byte_combination::most, v->front());
    how_ = how;
  }

  bool combines() const { return combines_; }

  std::string name() const override {
    return name_ + (has_table_ ? " (table)" : combines_ ? " (bytes)" : " (tables of rows)");
  }
  stride_support input_strides(std::size_t i) const override { return rows_->input_strides(i); }
  stride_support output_strides(std::size_t k) const override { return rows_->output_strides(k); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const bool passes = alike_within(in, out[0]) || (has_table_ && lie_alike({}, out[0], 0));
    if (passes && (has_table_ || combines_)) return 0;
    return table_rows_within(in, out[0]) ? threads * table_scratch() : rows_->scratch_bytes(in, out, threads);
  }
  void run(const launch& l) const override {
    const tensor& out = l.out[0];
    if (out.elements() == 0) return;
    std::span<const tensor> in = l.in;
    auto within = has_table_ || combines_ ? alike_within(in, out) : std::nullopt;
    if (!within && has_table_ && lie_alike({}, out, 0)) {
      copy_tensor(l.in[0], out, l.pool);  // then in place
      in = l.out;
      within = 0;
    }
    if (!within) {
      const auto rows = table_rows_within(in, out);
      return rows ? map_rows(l, *rows) : rows_->run(l);
    }
    constexpr std::int64_t grain = 32 * 1024;
    std::int64_t count = 1, blocks = 1;  // of a block of adjacent bytes
    for (std::size_t d = 0; d < out.rank(); ++d) (d < *within ? blocks : count) *= out.lens[d];
    const std::int64_t tasks = (count + grain - 1) / grain;
    const std::int64_t wanted = std::max<std::int64_t>(tasks, count > grain / 4 ? l.pool->size() : 1);
    const std::int64_t each = (count / wanted + 64) / 64 * 64, of_block = (count + each - 1) / each;
    kernels::byte_combination how = how_;
    if (combines_) how.how = form_.bound(nullptr);
    how.how.addend_row = how.how.result_row = 0;
    const auto part = [&](std::int64_t task, unsigned) {
      const std::int64_t first = task % of_block * each, n = std::min(each, count - first);
      const auto at = [&](const tensor& t) { return t.data + place(t, *within, task / of_block) + first; };
      std::byte* const to = at(out);
      if (has_table_)
        kiln_eigen_integers()->map_bytes(table_.data(), reinterpret_cast<const std::uint8_t*>(at(in[0])),
                                         reinterpret_cast<std::uint8_t*>(to), n);
      else
        kiln_eigen_integers()->combine_bytes(how, at(in[0]), at(in[1]), to, n);
    };
    if (blocks * of_block == 1) return part(0, 0);
    l.pool->parallel_for(blocks * of_block, part);
  }

 private:
  static void fill(tile_program::cursor& one, std::array<std::uint8_t, 256>& table) {
    one.result(0) = {reinterpret_cast<std::byte*>(table.data()), 1};
    one.begin_row();
    one.run(0, 0, 256);
    one.end_level(0, 256);
  }

  std::size_t table_scratch() const { return (program_.scratch_bytes(256) + 63) / 64 * 64; }
  // The first dim within which the bytes lie alike and the other operands are one value, where as many bytes as pay for
  // a table have it.
  std::optional<std::size_t> table_rows_within(std::span<const tensor> in, const tensor& out) const {
    constexpr std::int64_t least = 768;
    if (!byte_) return std::nullopt;
    std::int64_t count = 1;
    std::size_t d = out.rank();
    const auto repeats = [&](std::size_t dim) {
      for (std::size_t k = 0; k < in.size(); ++k)
        if (k != *byte_ && in[k].lens[dim] > 1 && in[k].strides[dim] != 0) return false;
      return true;
    };
    while (d > 0 && repeats(d - 1)) count *= out.lens[--d];
    if (count < least || !lie_alike(in.subspan(*byte_, 1), out, d)) return std::nullopt;
    return d;
  }
  void map_rows(const launch& l, std::size_t within) const {
    constexpr std::int64_t grain = 32 * 1024;
    const tensor& out = l.out[0];
    std::int64_t count = 1, rows = 1;
    for (std::size_t d = 0; d < out.rank(); ++d) (d < within ? rows : count) *= out.lens[d];
    const std::int64_t parts = (count + grain - 1) / grain, each = (count / parts + 64) / 64 * 64,
                       of_row = (count + each - 1) / each, some = std::max<std::int64_t>(1, grain / each);
    const auto task = [&](std::int64_t t, unsigned worker) {
      alignas(64) std::array<std::uint8_t, 256> all, table;
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
      tile_program::cursor one(program_, l.scratch.data() + worker * table_scratch(), 256);
      for (std::int64_t i = t * some, last = std::min(rows * of_row, i + some); i < last; ++i) {
        const std::int64_t row = i / of_row, first = i % of_row * each;
        for (std::size_t k = 0; k < l.in.size(); ++k)
          one.parameter(k) = {
              l.in[k].data + place(l.in[k], within, row) * static_cast<std::int64_t>(size_of(l.in[k].type)), 0};
        one.parameter(*byte_) = {reinterpret_cast<std::byte*>(all.data()), 1};
        fill(one, table);
        kiln_eigen_integers()->map_bytes(
            table.data(),
            reinterpret_cast<const std::uint8_t*>(l.in[*byte_].data) + place(l.in[*byte_], within, row) + first,
            reinterpret_cast<std::uint8_t*>(out.data) + place(out, within, row) + first, std::min(each, count - first));
      }
    };
    const std::int64_t tasks = (rows * of_row + some - 1) / some;
    if (tasks == 1) return task(0, 0);
    l.pool->parallel_for(tasks, task);
  }

  // Where a block begins, counted over the dims before `within`.
  static std::int64_t place(const tensor& t, std::size_t within, std::int64_t block) {
    std::int64_t at = 0;
    for (std::size_t d = within; d-- > 0; block /= t.lens[d]) at += block % t.lens[d] * t.strides[d];
    return at;
  }
  // The first dim within which all operands have their elements in the same order, without gaps, as many as pay.
  static std::optional<std::size_t> alike_within(std::span<const tensor> in, const tensor& out) {
    constexpr std::int64_t least = 1024;
    std::int64_t count = out.elements();
    for (std::size_t d = 0; d == 0 || (d < out.rank() && count >= least); ++d) {
      if (lie_alike(in, out, d)) return d;
      if (d < out.rank()) count /= std::max<std::int64_t>(out.lens[d], 1);
    }
    return std::nullopt;
  }
  // Whether all operands have their elements in the same order, without gaps, over the dims from `from` on.
  static bool lie_alike(std::span<const tensor> in, const tensor& out, std::size_t from) {
    std::int64_t last = 0, count = 1;
    for (std::size_t d = from; d < out.rank(); ++d) {
      count *= out.lens[d];
      if (out.lens[d] <= 1) continue;
      if (out.strides[d] <= 0) return false;
      last += (out.lens[d] - 1) * out.strides[d];
      for (const tensor& t : in)
        if (t.strides[d] != out.strides[d]) return false;
    }
    if (last + 1 != count) return false;
    // distinct places: strides in order are products of the extents within them
    std::int64_t expected = 1;
    for (std::size_t done = from; done < out.rank(); ++done)
      for (std::size_t d = from; d < out.rank(); ++d)
        if (out.lens[d] > 1 && out.strides[d] == expected) {
          expected *= out.lens[d];
          break;
        }
    return expected == count;
  }

  tile_program program_;
  std::unique_ptr<kernel> rows_;
  std::string name_;
  bool has_table_ = false, combines_ = false;
  std::optional<std::size_t> byte_;  // of which rows have tables
  alignas(64) std::array<std::uint8_t, 256> table_{};
  kernels::byte_combination how_;
  requantization_form form_;
};

}  // namespace

// A function of two bytes that is a requantization; null: the body is another.
static std::unique_ptr<byte_pointwise_kernel> combine_two(const kernel_request& r, const module_graph& body) {
  const auto bytes = byte_body::of(body, r);
  if (!bytes || bytes->parameters.size() != 2) return nullptr;
  const auto from = dequantized_byte::of(body, bytes->parameters[0]);
  if (!from) return nullptr;
  lower::contraction_body<module_graph> as_epilogue;
  as_epilogue.epilogue = body;
  as_epilogue.epilogue_inputs.push_back(1);
  const auto form = requantization_finder(as_epilogue, r, 0, 1).find(from->at);
  using kind = kernels::requantization::kind;
  if (!form || form->addend != 1 || form->how.result_kind == kind::floats) return nullptr;
  kernels::byte_combination how;
  how.is_signed = r.inputs[0].type == dtype::i8;
  how.zero = static_cast<std::int32_t>(from->zero);
  auto made = std::make_unique<byte_pointwise_kernel>(body, "pointwise of bytes");
  made->combine(how, *form);
  return made;
}

std::unique_ptr<kernel> lower_byte_pointwise(const kernel_request& r) {
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused || fused->kind != fusion::pointwise || r.instruction.results.size() != 1) return nullptr;
  const module_graph& body = r.whole.module(fused->body);
  if (r.inputs.size() == 1) {
    if (!byte_body::of(body, r)) return nullptr;
    auto made = std::make_unique<byte_pointwise_kernel>(body, "pointwise of bytes");
    return made->tabulate() ? std::move(made) : nullptr;
  }
  auto made = combine_two(r, body);
  if (const auto byte = byte_beside_row_values(body, r)) {
    auto rows = made ? std::move(made) : std::make_unique<byte_pointwise_kernel>(body, "pointwise of bytes");
    if (rows->tabulate_rows(*byte) || rows->combines()) made = std::move(rows);
  }
  return made;
}

}  // namespace kiln::eigen
