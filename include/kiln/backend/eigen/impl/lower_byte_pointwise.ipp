#include <algorithm>
#include <array>

#include "kiln/backend/eigen/impl/dequantized_byte.hpp"
#include "kiln/backend/eigen/impl/requantization_form.hpp"
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

// The pointwise kernel of such a body, which bytes that lie together in one order pass through in another way: a
// function of one byte is a table of what the body makes of each, a function of two that is a requantization is one.
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
    one.result(0) = {reinterpret_cast<std::byte*>(table_.data()), 1};
    one.begin_row();
    one.run(0, 0, 256);
    one.end_level(0, 256);
    return has_table_ = true;
  }
  void combine(kernels::byte_combination how, const requantization_form& form) {
    combines_ = true;
    form_ = form;
    for (std::vector<float>* v : {&form_.scale, &form_.bias, &form_.late_bias})
      if (!v->empty()) v->assign(kernels::byte_combination::most, v->front());
    how_ = how;
  }

  std::string name() const override { return name_ + (has_table_ ? " (table)" : " (bytes)"); }
  stride_support input_strides(std::size_t i) const override { return rows_->input_strides(i); }
  stride_support output_strides(std::size_t k) const override { return rows_->output_strides(k); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const bool passes = alike_within(in, out[0]) || (has_table_ && lie_alike({}, out[0], 0));
    return passes ? 0 : rows_->scratch_bytes(in, out, threads);
  }
  void run(const launch& l) const override {
    const tensor& out = l.out[0];
    if (out.elements() == 0) return;
    std::span<const tensor> in = l.in;
    auto within = alike_within(in, out);
    if (!within && has_table_ && lie_alike({}, out, 0)) {
      copy_tensor(l.in[0], out, l.pool);  // then in place
      in = l.out;
      within = 0;
    }
    if (!within) return rows_->run(l);
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
  alignas(64) std::array<std::uint8_t, 256> table_{};
  kernels::byte_combination how_;
  requantization_form form_;
};

}  // namespace

std::unique_ptr<kernel> lower_byte_pointwise(const kernel_request& r) {
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused || fused->kind != fusion::pointwise) return nullptr;
  const module_graph& body = r.whole.module(fused->body);
  const auto bytes = byte_body::of(body, r);
  if (!bytes) return nullptr;
  const auto make = [&] { return std::make_unique<byte_pointwise_kernel>(body, "pointwise of bytes"); };
  if (bytes->parameters.size() == 1) {
    auto made = make();
    if (!made->tabulate()) return nullptr;
    return made;
  }
  if (bytes->parameters.size() != 2) return nullptr;
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
  auto made = make();
  made->combine(how, *form);
  return made;
}

}  // namespace kiln::eigen
