#include "kiln/backend/eigen/affine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kiln/lower/contraction.hpp"

namespace kiln::eigen {
namespace {

// The float that a constant of one element holds, perhaps repeated by views.
std::optional<float> constant_of(const module_graph& m, value_id v) {
  const auto& ins = m[v.instruction];
  if (is_view(ins)) return constant_of(m, ins.inputs[0]);
  if (ins.kind != instruction_kind::literal || ins.results[0].type != dtype::f32 || ins.constant.elements() != 1)
    return std::nullopt;
  float x;
  std::memcpy(&x, ins.constant.bytes(), sizeof x);
  return x;
}

// The operand of a two-operand instruction that is not `chain`; none where both or neither are.
std::optional<value_id> other_operand(const basic_instruction<operation>& ins, std::uint32_t chain) {
  const bool left = ins.inputs[0].instruction == chain, right = ins.inputs[1].instruction == chain;
  if (left == right) return std::nullopt;
  return ins.inputs[left ? 1 : 0];
}

// Takes one more instruction after the chain into the form. NaN is no bound: it makes NaN of everything.
bool extend(affine_form& form, const module_graph& epilogue, const basic_instruction<operation>& ins,
            std::span<const std::size_t> parameter, bool scales) {
  const auto lower = [&](float x) { form.low = std::max(form.low, x), form.clamps = true; };
  const auto upper = [&](float x) { form.high = std::min(form.high, x), form.clamps = true; };
  if (ins.op.is<op::relu>()) {
    lower(0);
  } else if (ins.op.is<op::clip>() && ins.inputs[0].instruction == form.last) {
    const auto low = constant_of(epilogue, ins.inputs[1]), high = constant_of(epilogue, ins.inputs[2]);
    if (!low || !high || std::isnan(*low) || std::isnan(*high)) return false;
    lower(*low), upper(*high);
  } else if (ins.op.is<op::mul>()) {
    const auto other = other_operand(ins, form.last);
    const auto factor = other ? constant_of(epilogue, *other) : std::nullopt;
    // one rounding each, as the program has them
    if (!scales || !factor || form.factor != 1 || form.offset != 0 || !form.addends.empty() || form.clamps)
      return false;
    form.factor = *factor;
  } else if (ins.op.is<op::add>() || ins.op.is<op::max>() || ins.op.is<op::min>()) {
    const auto other = other_operand(ins, form.last);
    if (!other) return false;
    const auto constant = constant_of(epilogue, *other);
    if (ins.op.is<op::max>() || ins.op.is<op::min>()) {
      if (!constant || std::isnan(*constant)) return false;
      ins.op.is<op::max>() ? lower(*constant) : upper(*constant);
    } else if (form.clamps) {
      return false;
    } else if (constant) {
      // addends that round on purpose are added one by one
      const float sum = form.offset + *constant, greater = std::max(std::fabs(form.offset), std::fabs(*constant));
      if (!(greater <= 0x1p16F) || (greater >= 0x1p10F && std::fabs(sum) < greater / 2)) return false;
      form.offset = sum;
    } else if (parameter[other->instruction] != 0) {  // an input; parameter 0 is the product itself
      form.addends.push_back(parameter[other->instruction] - 1);
    } else {
      return false;
    }
  } else {
    return false;
  }
  return form.low <= form.high;
}

}  // namespace

std::optional<affine_form> find_affine(const module_graph& epilogue, bool scales) {
  affine_form form;
  std::vector<std::size_t> parameter(epilogue.size(), 0);
  std::vector<bool> inside(epilogue.size(), false);  // of the activation
  std::size_t parameters = 0;
  bool activation = false;
  for (std::uint32_t i = 0; i < epilogue.size(); ++i) {
    const auto& ins = epilogue[i];
    if (ins.kind == instruction_kind::parameter) {
      if (ins.results[0].type != dtype::f32) return std::nullopt;
      if (parameters == 0) form.last = i;
      parameter[i] = parameters++;
      continue;
    }
    if (ins.kind == instruction_kind::literal || ins.op.kind() == op_kind::view) continue;
    affine_form longer = form;
    const bool reads =
        std::any_of(ins.inputs.begin(), ins.inputs.end(), [&](value_id v) { return v.instruction == form.last; });
    if (!activation && reads && extend(longer, epilogue, ins, parameter, scales)) {
      form = longer;
      form.last = i;
      continue;
    }
    activation = true;
    inside[i] = true;
    for (value_id v : ins.inputs)
      if (v.instruction != form.last && !inside[v.instruction] && !constant_of(epilogue, v)) return std::nullopt;
  }
  if (epilogue.outputs.size() != 1 ||
      !(inside[epilogue.outputs[0].instruction] || epilogue.outputs[0].instruction == form.last))
    return std::nullopt;
  return form;
}

module_graph activation_of(const module_graph& epilogue, const affine_form& form) {
  return lower::module_after(epilogue, form.last, [&](std::uint32_t i) {
    const auto& ins = epilogue[i];
    if (ins.kind != instruction_kind::op) return ins.kind == instruction_kind::literal;
    return i > form.last || (ins.op.kind() == op_kind::view && constant_of(epilogue, {i, 0}));
  });
}

kernels::activation compiled_activation(const module_graph& body) {
  using function = kernels::activation::function;
  // the instructions after the parameter: one function, perhaps multiplied by its argument
  const basic_instruction<operation>* call = nullptr;
  bool product = false;
  std::uint32_t argument = 0, last = 0;
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    const auto& ins = body[i];
    if (ins.kind == instruction_kind::parameter) {
      argument = i;
    } else if (ins.kind != instruction_kind::op || product) {
      return {};
    } else if (!call) {
      if (ins.inputs.size() != 1 || ins.inputs[0].instruction != argument) return {};
      call = &ins;
    } else {
      const auto other = other_operand(ins, last);
      if (!ins.op.is<op::mul>() || !other || other->instruction != argument) return {};
      product = true;
    }
    last = i;
  }
  if (!call || body.outputs[0].instruction != last || body.outputs[0].result != 0) return {};
  if (call->op.is<op::sigmoid>()) return {product ? function::swish : function::sigmoid};
  if (const auto* gate = call->op.get_if<op::hard_sigmoid>()) {
    constexpr op::hard_sigmoid of_swish{.alpha = 1.0F / 6, .beta = 0.5F};
    if (!product) return {function::hard_sigmoid, *gate};
    return {gate->alpha == of_swish.alpha && gate->beta == of_swish.beta ? function::hard_swish : function::none};
  }
  if (product) return {};
  if (call->op.is<op::hard_swish>()) return {function::hard_swish};
  if (const auto* gelu = call->op.get_if<op::gelu>())
    return {gelu->tanh_approximation ? function::gelu_by_tanh : function::gelu};
  return {call->op.is<op::tanh>() ? function::tanh : function::none};
}

bool bind_affine(const affine_form& form, std::span<const tensor* const> addends, const tensor& out, std::size_t inner,
                 bool nhwc, kernels::affine_epilogue<float>& to) {
  const std::size_t rank = out.rank();
  to.factor = form.factor;
  to.offset = form.offset;
  to.clamps = form.clamps;
  to.low = form.low;
  to.high = form.high;
  to.then = form.then;
  for (const tensor* addend : addends) {
    const tensor& t = *addend;
    if (t.type != dtype::f32 || t.rank() != rank) return false;
    // Rows and columns as one dim each: their extent, and the step where it is even.
    struct {
      std::int64_t lens = 1, step = 0;
      bool even = true, repeats = true;
      std::int64_t last = 0, last_lens = 1;  // of the innermost dim that varies
      bool one_varies = true;
    } part[2];
    for (std::size_t k = rank; k-- > 0;) {
      auto& p = part[k + inner >= rank ? 1 : 0];
      const std::size_t d = !nhwc || k == 0 ? k : k + 1 < rank ? k + 1 : 1;
      if (out.lens[d] == 1) continue;
      const std::int64_t step = t.lens[d] == 1 ? 0 : t.strides[d];
      if (p.lens == 1)
        p.step = p.last = step, p.last_lens = out.lens[d];
      else {
        p.even = p.even && step == p.step * p.lens;
        p.one_varies = p.one_varies && step == 0;
      }
      p.repeats = p.repeats && step == 0;
      p.lens *= out.lens[d];
    }
    const auto& [rows, cols] = part;
    const auto* at = reinterpret_cast<const float*>(t.data);
    if (cols.repeats && rows.repeats) {
      if (to.row_bias) return false;
      to.row_bias = at, to.row_period = 1;
    } else if (rows.repeats && cols.even && cols.step == 1) {
      if (to.col_bias[1]) return false;
      to.col_bias[to.col_bias[0] ? 1 : 0] = at;
    } else if (cols.repeats && rows.one_varies && rows.last == 1) {
      if (to.row_bias) return false;
      to.row_bias = at, to.row_period = rows.last_lens;
    } else if (rows.even && cols.even && (cols.step == 1 || cols.lens == 1)) {
      if (to.addend) return false;
      to.addend = at, to.addend_row = rows.step;
    } else {
      return false;
    }
  }
  return true;
}

kernels::image_layout image_layout_of(const tensor& t) {
  if (t.rank() < 3) return {};
  const auto pixel = lower::nhwc_pixel_stride(t.lens, t.strides);
  const bool contiguous = t.lens[1] == 1 ? !t.dense() : t.strides[1] == 1;  // one channel is both NCHW and NHWC
  return pixel && contiguous ? kernels::image_layout{true, *pixel} : kernels::image_layout{};
}

tensor nhwc_view(const tensor& t) {
  tensor out = t;
  for (std::size_t d = 1; d + 1 < t.rank(); ++d) out.lens[d] = t.lens[d + 1], out.strides[d] = t.strides[d + 1];
  out.lens.back() = t.lens[1];
  out.strides.back() = t.strides[1];
  return out;
}

}  // namespace kiln::eigen
