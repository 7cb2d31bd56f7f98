#include "kiln/runtime/fallback_kernel.hpp"

#include "kiln/core/object.hpp"

namespace kiln {
namespace {

shape shape_of(const tensor& t) { return {t.type, to_dims(t.lens)}; }

std::size_t decoded_bytes(std::span<const tensor> operands) {
  std::size_t n = 0;
  for (const tensor& t : operands) n += (static_cast<std::size_t>(t.elements()) * 8 + 63) / 64 * 64;
  return n;
}

constexpr std::size_t operand_bytes(std::size_t count) { return (count * sizeof(evaluation::operand) + 63) / 64 * 64; }

// Takes room for the tensors as operands from the scratch memory: there may be any number of them.
std::span<const evaluation::operand> operands_of(std::span<const tensor> tensors, scratch_memory& scratch) {
  static_assert(std::is_trivially_destructible_v<evaluation::operand>);
  auto* first = reinterpret_cast<evaluation::operand*>(scratch.data + scratch.used);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    ::new (first + i) evaluation::operand{shape_of(tensors[i]), nullptr, tensors[i].data};
  scratch.used += operand_bytes(tensors.size());
  return {first, tensors.size()};
}

class fallback_kernel final : public kernel {
 public:
  explicit fallback_kernel(const operation& op) : op_(op) {
    small_vector<dimension> symbols;
    op.symbols(symbols);
    symbolic_ = !symbols.empty();
  }
  std::string name() const override { return std::string(op_.name()) + " (reference)"; }
  bool is_fallback() const override { return true; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return operand_bytes(in.size()) + operand_bytes(out.size()) + decoded_bytes(in) + decoded_bytes(out);
  }
  void run(const launch& l) const override {
    scratch_memory scratch{l.scratch.data(), l.scratch.size(), 0};
    const auto in = operands_of(l.in, scratch), out = operands_of(l.out, scratch);
    evaluation e(in, out, scratch);
    if (symbolic_ && l.symbols) {
      operation bound = op_;
      bound.substitute(*l.symbols);
      bound.evaluate(e);
    } else {
      op_.evaluate(e);
    }
    e.finish();
  }

 private:
  operation op_;
  bool symbolic_ = false;
};

class body_kernel final : public kernel {
 public:
  explicit body_kernel(const module_graph& body) : body_(body) {}
  std::string name() const override { return "body (reference)"; }
  bool is_fallback() const override { return true; }
  void run(const launch& l) const override {
    small_vector<small_vector<argument>> values(body_.size());
    std::size_t parameter = 0;
    for (std::uint32_t i = 0; i < body_.size(); ++i) {
      const auto& step = body_[i];
      if (step.kind == instruction_kind::parameter) {
        const tensor& t = l.in[parameter++];
        values[i].push_back(argument({t.type, to_dims(t.lens), to_dims(t.strides)}, t.data).contiguous());
        continue;
      }
      if (step.kind == instruction_kind::literal) {
        values[i].push_back(argument(step.constant));
        continue;
      }
      small_vector<argument> in;
      for (value_id v : step.inputs) in.push_back(values[v.instruction][v.result]);
      operation op = step.op;
      if (l.symbols) op.substitute(*l.symbols);
      values[i] = evaluate_op(op, in);
    }
    for (std::size_t k = 0; k < l.out.size(); ++k) {
      const value_id v = body_.outputs[k];
      copy_tensor(tensor_of(values[v.instruction][v.result]), l.out[k], nullptr);
    }
  }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }

 private:
  module_graph body_;
};

}  // namespace

small_vector<argument> evaluate_op(const operation& op, std::span<const argument> in) {
  small_vector<argument> dense, out;
  shapes given;
  small_vector<evaluation::operand> from, to;
  for (const argument& a : in) {
    dense.push_back(a.contiguous());
    given.push_back(dense.back().get_shape());
    from.push_back({dense.back().get_shape(), nullptr, dense.back().data()});
  }
  const auto results = op.shape_rule(given);
  if (!results) raise(results.why());
  for (const shape& s : *results) {
    out.push_back(argument(shape{s.type, s.lens}));
    to.push_back({out.back().get_shape(), nullptr, out.back().data()});
  }
  evaluation e(from, to);
  op.evaluate(e);
  e.finish();
  for (argument& a : out)
    if (is_object(a.get_shape().type)) a = retained(a.get_shape(), a.data());
  return out;
}

std::unique_ptr<kernel> make_fallback_kernel(const operation& op) { return std::make_unique<fallback_kernel>(op); }

std::unique_ptr<kernel> make_body_kernel(const module_graph& body) { return std::make_unique<body_kernel>(body); }

}  // namespace kiln
