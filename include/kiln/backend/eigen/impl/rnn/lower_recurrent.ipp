#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/recurrent.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

class recurrent_kernel final : public kernel {
 public:
  recurrent_kernel(const op::recurrent& cell, const kernel_request& r) : cell_(cell) {
    const literal* const weights = r.constants[recurrence];
    if (!weights) return;
    const layout& l = r.constant_layouts[recurrence];
    const std::int64_t hidden = l.lens[0].value();
    const recurrent_table& isa = *kiln_eigen_recurrent();
    packed_ = r.packed(static_cast<std::size_t>(isa.packed_floats(cell_, hidden)) * sizeof(float), [&](std::byte* to) {
      isa.pack(*r.pool, cell_, hidden, reinterpret_cast<float*>(to),
               weights->bytes() + l.offset.value() * static_cast<std::int64_t>(sizeof(float)), l.strides[0].value(),
               l.strides[1].value());
    });
  }

  std::string name() const override {
    const std::string_view names[] = {"recurrence", "gru", "lstm"};
    return std::string(names[static_cast<std::size_t>(cell_.cell)]) + (packed_ ? " (packed)" : "");
  }
  bool packed_input(std::size_t i) const override { return packed_ && i == recurrence; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t i) const override {
    return i == recurrence ? stride_support::any : i == lengths ? stride_support::dense : stride_support::rows;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    const recurrent_table& isa = *kiln_eigen_recurrent();
    const std::int64_t batch = in[first].lens[0], hidden = in[first].lens[1];
    const std::int64_t packs = packed_ ? 0 : isa.packed_floats(cell_, hidden);
    return static_cast<std::size_t>(packs + isa.scratch_floats(cell_, batch, hidden)) * sizeof(float);
  }

  double estimated_seconds(std::span<const tensor> in, std::span<const tensor>, unsigned threads) const override {
    return kiln_eigen_recurrent()->seconds(cell_, in[0].lens[0], in[first].lens[0], in[first].lens[1], threads);
  }

  void run(const launch& l) const override {
    const recurrent_table& isa = *kiln_eigen_recurrent();
    const tensor &x = l.in[0], &h = l.in[first], &y = l.out[0], &last = l.out[1];
    auto* scratch = reinterpret_cast<float*>(l.scratch.data());
    kernels::recurrent_problem p;
    p.cell = &cell_;
    p.steps = x.lens[0], p.batch = x.lens[1], p.hidden = h.lens[1];
    p.x = x.as<const float>(), p.x_step = x.strides[0], p.x_row = x.strides[1];
    p.recurrence = reinterpret_cast<const float*>(packed_.data());
    if (!packed_) {
      const tensor& r = l.in[recurrence];
      isa.pack(*l.pool, cell_, p.hidden, scratch, r.data, r.strides[0], r.strides[1]);
      p.recurrence = scratch;
      scratch += isa.packed_floats(cell_, p.hidden);
    }
    p.bias = l.in[2].as<const float>();
    p.first = h.as<const float>(), p.first_row = h.strides[0];
    p.lengths = l.in[lengths].data, p.wide = l.in[lengths].type == dtype::i64;
    p.y = y.as<float>(), p.y_step = y.strides[0], p.y_row = y.strides[1];
    p.last = last.as<float>(), p.last_row = last.strides[0];
    if (cell_.cell == op::cell_kind::lstm) {
      p.first_cell = l.in[5].as<const float>(), p.first_cell_row = l.in[5].strides[0];
      p.peepholes = l.in[6].as<const float>();
      p.last_cell = l.out[2].as<float>(), p.last_cell_row = l.out[2].strides[0];
    }
    isa.run(*l.pool, p, scratch);
  }

 private:
  static constexpr std::size_t recurrence = 1, first = 3, lengths = 4;  // operands
  op::recurrent cell_;
  buffer packed_;
};

}  // namespace

std::unique_ptr<kernel> lower_recurrent(const kernel_request& r) {
  const auto* const cell = r.instruction.op.get_if<op::recurrent>();
  if (!cell || r.inputs[0].type != dtype::f32) return nullptr;
  if (r.inputs[4].type != dtype::i64 && r.inputs[4].type != dtype::i32) return nullptr;
  return std::make_unique<recurrent_kernel>(*cell, r);
}

}  // namespace kiln::eigen
