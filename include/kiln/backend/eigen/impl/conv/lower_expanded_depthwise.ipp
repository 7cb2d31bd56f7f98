#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/expanded_depthwise.hpp"
#include "kiln/backend/eigen/impl/conv/convolution_problem.hpp"
#include "kiln/backend/eigen/impl/pointwise/body_of_steps.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/kernel/conv/expanded_depthwise.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/fusion_body.hpp"
#include "kiln/runtime/own_cache.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using kernels::conv_method;
constexpr std::size_t none = ~std::size_t{0};

// A convolution of one of the steps, as the kernel computes it.
struct layer {
  fused_contraction body;
  op::convolution conv;
  ints weights;  // their extents
};

// The convolution of an instruction where the kernel knows its epilogue: at most a sum of one constant a channel,
// bounds and an activation. `constant_of(value)` tells what is constant.
template <class ConstantOf>
std::optional<layer> find_layer(const program& whole, const module_graph& m, std::uint32_t i,
                                ConstantOf&& constant_of) {
  const auto& ins = m[i];
  if (ins.kind != instruction_kind::op || ins.results.size() != 1) return std::nullopt;
  const auto split = lower::split_contraction(whole, ins);
  const auto* conv = split ? split->op.get_if<op::convolution>() : nullptr;
  if (!conv) return std::nullopt;
  const shape &x = m.shape_of(ins.inputs[split->operands[0]]), &w = m.shape_of(ins.inputs[split->operands[1]]);
  const constant_view weights = constant_of(ins.inputs[split->operands[1]]);
  if (x.type != dtype::f32 || w.type != dtype::f32 || ins.results[0].type != dtype::f32 || x.rank() != 4 ||
      !w.is_constant() || !weights || !weights.at.is_standard())
    return std::nullopt;
  layer out{compiled_contraction(*split), *conv, to_ints(w.lens)};
  if (!out.body.epilogue) return out;
  if (!out.body.affine || out.body.affine->addends.size() > 1) return std::nullopt;
  for (const std::uint32_t k : out.body.epilogue_inputs) {
    const constant_view c = constant_of(ins.inputs[k]);
    if (!c || c.from->get_shape().type != dtype::f32 || !lies_by_channel(c.at)) return std::nullopt;
  }
  return out;
}

struct layers {
  layer expand, depthwise;
  value_id between;
};

// The two of which instruction i is the second. `alone(value)` tells whether it has one reader.
template <class ConstantOf, class Alone>
std::optional<layers> find_layers(const program& whole, const module_graph& m, std::uint32_t i,
                                  ConstantOf&& constant_of, Alone&& alone) {
  const auto image_of = [&](std::uint32_t k) -> value_id {
    const auto found = lower::contraction_of(whole, m, m[k]);
    if (!found || !found.template get_if<op::convolution>()) return {};
    const auto split = lower::split_contraction(whole, m[k]);
    return split ? m[k].inputs[split->operands[0]] : value_id{};
  };
  const value_id between = image_of(i);
  if (!between || !alone(between) || !image_of(between.instruction)) return std::nullopt;
  auto depthwise = find_layer(whole, m, i, constant_of);
  if (!depthwise || depthwise->conv.group == 1) return std::nullopt;
  auto expand = find_layer(whole, m, between.instruction, constant_of);
  if (!expand) return std::nullopt;
  return layers{std::move(*expand), std::move(*depthwise), between};
}

expanded_depthwise strips_of(const layers& l, const ints& x, const ints& between) {
  expanded_depthwise out;
  out.expand = problem_of(l.expand.conv, x, l.expand.weights, false);
  out.depthwise = problem_of(l.depthwise.conv, between, l.depthwise.weights, false);
  return out;
}

// Whether one step takes less time than two, which read and write what is between. Measured with two threads and L2
// caches of 2 MiB: 1.05 to 1.4 times as fast from a quarter of a cache on, where vectors multiply.
bool gains(const expanded_depthwise& p) {
  const isa_table& isa = *kiln_eigen_isa();
  if (!kernels::expanded_depthwise_convolution<float>::serves(p.expand, p.depthwise)) return false;
  kernels::gemm_problem<float> product{
      .m = p.expand.batch * p.expand.output_pixels(), .n = p.expand.out_channels, .k = p.expand.in_channels};
  product.a_row = p.expand.in_channels;
  if (isa.gains_from_matrix_unit(product)) return false;
  const std::int64_t between = 4 * product.m * product.n, cache = own_cache_bytes();
  const std::int64_t held = 4 * kiln_eigen_expanded_depthwise()->scratch_floats(p, 1);
  return between >= cache / 4 && held <= cache / 2;
}

// One layer as a fused instruction of a body: a contraction by itself becomes one in a body of its own, so that no
// other kernel takes the two for a convolution and its epilogue.
operation as_fused(shared_bodies<program>& bodies, const module_graph& m, std::uint32_t i) {
  const auto& ins = m[i];
  if (ins.op.is<op::fused>()) return ins.op;
  module_graph body;
  body.name = text(ins.op.name());
  small_vector<value_id> in;
  for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
    text name("p");
    name.append(static_cast<std::int64_t>(k));
    in.push_back(body.add_parameter(name.view(), m.shape_of(ins.inputs[k])));
  }
  body.outputs.push_back(body.add_with_shapes(ins.op, std::move(in), ins.results));
  body.output_names.push_back(text("r0"));
  return operation(op::fused{fusion::contraction, bodies.add(std::move(body))});
}

class expanded_depthwise_kernel final : public kernel {
 public:
  /// `body` is that of the instruction.
  expanded_depthwise_kernel(const kernel_request& r, layers&& l, const module_graph& body) : layers_(std::move(l)) {
    const std::uint32_t last = body.outputs[0].instruction;
    const auto read = [&](std::uint32_t i, std::vector<std::size_t>& to) {
      for (const value_id v : body[i].inputs)
        to.push_back(v == layers_.between ? none : parameter_index(body, v.instruction));
    };
    read(layers_.between.instruction, expand_inputs_);
    read(last, depthwise_inputs_);
    const expanded_depthwise p = strips_of(layers_, sizes(r.inputs[expand_inputs_[layers_.expand.body.operands[0]]]),
                                           sizes(body.shape_of(layers_.between)));
    expand_weights_ = packed(r, p.expand, conv_method::nhwc_gemm, weights_input(layers_.expand, expand_inputs_));
    depthwise_weights_ =
        packed(r, p.depthwise, conv_method::depthwise_nhwc, weights_input(layers_.depthwise, depthwise_inputs_));
  }

  std::string name() const override { return "convolution, depthwise convolution (strips)"; }
  bool packed_input(std::size_t i) const override {
    return i == weights_input(layers_.expand, expand_inputs_) ||
           i == weights_input(layers_.depthwise, depthwise_inputs_);
  }
  std::size_t packed_bytes() const override { return expand_weights_.size() + depthwise_weights_.size(); }
  stride_support input_strides(std::size_t i) const override {
    return i == image() ? stride_support::nchw_or_nhwc : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const expanded_depthwise p = problem(in);
    return copy_bytes(in[image()]) + copy_bytes(out[0]) +
           static_cast<std::size_t>(kiln_eigen_expanded_depthwise()->scratch_floats(p, threads)) * sizeof(float);
  }

  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const double products_a_second = 75e9 * isa.vector_bytes / 64;
    if (out[0].elements() == 0) return 0;
    const expanded_depthwise p = problem(in);
    return (isa.conv_cost(p.expand, conv_method::nhwc_gemm, true, true) +
            isa.conv_cost(p.depthwise, conv_method::depthwise_nhwc, true, true)) /
           (products_a_second * threads);
  }

  void run(const launch& l) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const tensor &x = l.in[image()], &y = l.out[0];
    if (y.elements() == 0) return;
    expanded_depthwise p = problem(l.in);
    std::byte* scratch = l.scratch.data();
    const kernels::image_layout from = image_layout_of(x), to = image_layout_of(y);
    p.x = x.as<const float>(), p.x_step = from.nhwc ? from.step : x.lens[1];
    p.y = y.as<float>(), p.y_step = to.nhwc ? to.step : y.lens[1];
    if (!from.nhwc) {
      auto* const copy = reinterpret_cast<float*>(scratch);
      isa.convert_images(*l.pool, x.lens[0], x.lens[1], x.lens[2] * x.lens[3], p.x, from, copy, {true, p.x_step});
      p.x = copy;
      scratch += copy_bytes(x);
    }
    if (!to.nhwc) p.y = reinterpret_cast<float*>(scratch), scratch += copy_bytes(y);
    p.expand_weights = reinterpret_cast<const float*>(expand_weights_.data());
    p.depthwise_weights = reinterpret_cast<const float*>(depthwise_weights_.data());
    const ints lens = between_lens(l.in);
    const tensor between{nullptr, dtype::f32, lens, lower::nhwc_strides(lens)};
    tensor result = y;
    result.strides = lower::nhwc_strides(y.lens);
    kernels::affine_epilogue<float> forms[2];
    p.between = bind(layers_.expand, expand_inputs_, l.in, between, between, forms[0]);
    p.result = bind(layers_.depthwise, depthwise_inputs_, l.in, between, result, forms[1]);
    kiln_eigen_expanded_depthwise()->run(*l.pool, p, reinterpret_cast<float*>(scratch));
    if (!to.nhwc)
      isa.convert_images(*l.pool, y.lens[0], y.lens[1], y.lens[2] * y.lens[3], p.y, {true, p.y_step}, y.as<float>(),
                         to);
  }

 private:
  static std::size_t weights_input(const layer& l, const std::vector<std::size_t>& inputs) {
    return inputs[l.body.operands[1]];
  }
  std::size_t image() const { return expand_inputs_[layers_.expand.body.operands[0]]; }

  static buffer packed(const kernel_request& r, const conv_problem& p, conv_method method, std::size_t weights) {
    const isa_table& isa = *kiln_eigen_isa();
    const auto floats = static_cast<std::size_t>(isa.conv_weight_floats(p, method));
    return r.packed(floats * sizeof(float), [&](std::byte* to) {
      isa.pack_conv_weights(*r.pool, p, method, reinterpret_cast<float*>(to), r.constants[weights]->bytes());
    });
  }

  // The layer reads and writes NHWC; an image in the other layout is copied.
  static std::size_t copy_bytes(const tensor& t) {
    return image_layout_of(t).nhwc ? 0 : (static_cast<std::size_t>(t.elements()) * sizeof(float) + 63) / 64 * 64;
  }

  ints between_lens(std::span<const tensor> in) const {
    ints lens = in[image()].lens;
    lens[1] = layers_.expand.weights[0];
    return lens;
  }
  expanded_depthwise problem(std::span<const tensor> in) const {
    return strips_of(layers_, in[image()].lens, between_lens(in));
  }

  // The epilogue of a layer, in `form`.
  static conv_epilogue bind(const layer& l, const std::vector<std::size_t>& inputs, std::span<const tensor> in,
                            const tensor& between, const tensor& out, kernels::affine_epilogue<float>& form) {
    conv_epilogue to;
    if (!l.body.epilogue) return to;
    inline_vector<tensor, 40> own;
    for (const std::size_t k : inputs) own.push_back(k == none ? between : in[k]);
    if (!l.body.bind(own, out, 1, form, true))
      raise(errc::internal, "the epilogue of a convolution in strips is no sum of one constant a channel");
    to.affine = &form;
    to.self = const_cast<fused_contraction*>(&l.body);
    if (l.body.activation) to.call = activate_pixels;
    return to;
  }

  layers layers_;
  // What the layers read, as inputs of the instruction; `none` for what is between.
  std::vector<std::size_t> expand_inputs_, depthwise_inputs_;
  buffer expand_weights_, depthwise_weights_;
};

// The body of an instruction that `fuse_expanded_depthwise` may have made: two fused instructions over parameters.
const module_graph* body_of(const program& whole, const basic_instruction<operation>& instruction) {
  const auto* fused = instruction.kind == instruction_kind::op ? instruction.op.get_if<op::fused>() : nullptr;
  if (!fused || fused->kind != fusion::contraction || instruction.results.size() != 1) return nullptr;
  const module_graph& body = whole.module(fused->body);
  std::size_t steps = 0;
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (body[i].kind == instruction_kind::parameter) continue;
    const auto* inner = body[i].kind == instruction_kind::op ? body[i].op.get_if<op::fused>() : nullptr;
    const auto found = inner ? lower::contraction_of(whole, body, body[i]) : lower::located_instruction<module_graph>{};
    if (!found.get_if<op::convolution>()) return nullptr;
    ++steps;
  }
  return steps == 2 ? &body : nullptr;
}

}  // namespace

bool is_expanded_depthwise(const program& whole, const basic_instruction<operation>& instruction) {
  return body_of(whole, instruction) != nullptr;
}

pass_note fuse_expanded_depthwise(program& p) {
  pass_note note("fuse_expanded_depthwise");
  shared_bodies<program> bodies(p);
  for_each_unfused(p, [&](module_graph& m) {
    const user_lists users(m);
    const rewriter<module_graph> values(m);
    const auto constant_of = [&](value_id v) { return viewed_constant(values, v); };
    const auto alone = [&](value_id v) { return users[v.instruction].size() == 1; };
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op) continue;
      const auto found = find_layers(p, m, i, constant_of, alone);
      if (!found) continue;
      const std::uint32_t first = found->between.instruction;
      const shape& x = m.shape_of(m[first].inputs[found->expand.body.operands[0]]);
      // rows of unknown width may exceed any buffer
      const bool known = x.lens[2].is_constant() && x.lens[3].is_constant();
      if (!known || !gains(strips_of(*found, sizes(x), sizes(m.shape_of(found->between))))) {
        note.remark(
            text("a depthwise convolution stays a step beside the pointwise one before it where what is between "
                 "stays in the caches, its rows have no known width or the matrix unit multiplies"));
        continue;
      }
      small_vector<value_id> inputs;
      module_graph body =
          body_of_steps(m, "strips", {first, i}, inputs, [&](std::uint32_t k) { return as_fused(bodies, m, k); });
      m[i].op = operation(op::fused{fusion::contraction, bodies.add(std::move(body))});
      m[i].inputs = std::move(inputs);
      note.count("strips");
    }
    m.compact();
  });
  return note;
}

std::unique_ptr<kernel> lower_expanded_depthwise(const kernel_request& r) {
  const module_graph* body = body_of(r.whole, r.instruction);
  if (!body) return nullptr;
  auto found = find_layers(
      r.whole, *body, body->outputs[0].instruction,
      [&](value_id v) -> constant_view {
        if (body->producer(v).kind != instruction_kind::parameter) return {};
        const std::size_t k = parameter_index(*body, v.instruction);
        return {r.constants[k], r.constant_layouts[k]};
      },
      [](value_id) { return true; });
  if (!found) return nullptr;
  return std::make_unique<expanded_depthwise_kernel>(r, std::move(*found), *body);
}

}  // namespace kiln::eigen
