#include <algorithm>
#include <cmath>
#include <cstring>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/impl/conv/convolution_problem.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// A dilated convolution at stride 1 as one that is not: along each spatial axis, outputs i, i + d, i + 2 d, ... read
// inputs that are d apart, too. Those form an image, a phase, and the phases of all images a batch.
struct phases {
  ints each;                   // by spatial axis: how many
  op::convolution of_phase{};  // of the batch of phases
  ints in, out;                // its extents; phases shorter than the first end in zeros
  bool even = true;            // all phases of the input are as long
  std::int64_t count() const { return product(each); }
};

// Empty where a phase of the outputs would begin within one of the inputs, or nothing is dilated.
std::optional<phases> phases_of(const op::convolution& conv, const ints& x, const ints& w) {
  const std::size_t axes = x.size() - 2;
  const conv_problem p = problem_of(conv, x, w, false);
  phases f;
  f.of_phase = conv;
  f.of_phase.pads.resize(2 * axes, 0);
  f.of_phase.dilation.resize(axes, 1);
  f.in = {0, x[1]}, f.out = {0, w[0]};
  for (std::size_t k = 0; k < axes; ++k) {
    const std::size_t a = 3 - axes + k;
    const std::int64_t d = p.kernel[a] == 1 ? 1 : p.dilation[a], made = p.output(a);
    if (p.stride[a] != 1 || p.pad_begin[a] % d != 0 || made < d || p.input[a] < d) return {};
    const std::int64_t in = (p.input[a] + d - 1) / d, out = (made + d - 1) / d, begin = p.pad_begin[a] / d;
    const std::int64_t end = out - 1 + p.kernel[a] - in - begin;
    if (end < 0) return {};
    f.each.push_back(d);
    f.even = f.even && p.input[a] % d == 0;
    f.of_phase.pads[k] = begin, f.of_phase.pads[axes + k] = end;
    f.of_phase.dilation[k] = 1;
    f.in.push_back(in), f.out.push_back(out);
  }
  f.in[0] = f.out[0] = x[0] * f.count();
  if (f.count() == 1) return {};
  return f;
}

tensor dense(std::byte* at, const ints& lens, bool nhwc) {
  return {at, dtype::f32, lens, nhwc ? lower::nhwc_strides(lens) : row_major(lens)};
}
std::size_t bytes_of(const ints& lens) {
  return (static_cast<std::size_t>(product(lens)) * sizeof(float) + 63) / 64 * 64;
}

// Image `batch`'s phase `at` among all outputs or inputs, and where it lies among the phases.
std::pair<tensor, tensor> places_of(const phases& f, const tensor& whole, const tensor& split, std::int64_t task) {
  std::int64_t at = task % f.count();
  const std::int64_t image = task / f.count();
  tensor from = whole, to = split;
  std::int64_t offset = image * whole.strides[0];
  for (std::size_t k = f.each.size(); k-- > 0; at /= f.each[k]) {
    const std::int64_t d = f.each[k], first = at % d;
    offset += first * whole.strides[k + 2];
    from.lens[k + 2] = to.lens[k + 2] = (whole.lens[k + 2] - first + d - 1) / d;
    from.strides[k + 2] *= d;
  }
  from.lens[0] = to.lens[0] = 1;
  from.data += offset * static_cast<std::int64_t>(sizeof(float));
  to.data += task * split.strides[0] * static_cast<std::int64_t>(sizeof(float));
  return {from, to};
}

class dilated_convolution_kernel final : public kernel {
 public:
  dilated_convolution_kernel(fused_contraction body, std::unique_ptr<kernel> inner, bool nhwc)
      : body_(std::move(body)),
        attributes_(*body_.op.get_if<op::convolution>()),
        inner_(std::move(inner)),
        nhwc_(nhwc) {}
  std::string name() const override { return inner_->name() + " of phases" + (body_.epilogue ? "+epilogue" : ""); }
  bool packed_input(std::size_t i) const override { return i == body_.operands[1] && inner_->packed_input(1); }
  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  stride_support input_strides(std::size_t i) const override {
    const auto& own = body_.epilogue_inputs;
    if (i == body_.operands[0]) return stride_support::nchw_or_nhwc;
    return std::find(own.begin(), own.end(), i) != own.end() ? stride_support::any : stride_support::dense;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::nchw_or_nhwc; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const phases f = split(in);
    const tensor inputs[] = {dense(nullptr, f.in, nhwc_), in[body_.operands[1]]}, result = dense(nullptr, f.out, nhwc_);
    std::size_t work = inner_->scratch_bytes(inputs, std::span(&result, 1), threads);
    if (body_.epilogue) work = std::max(work, epilogue_scratch_bytes(body_, in, out[0], out[0], threads));
    return bytes_of(f.in) + bytes_of(f.out) + work;
  }

  void run(const launch& l) const override {
    const tensor &x = l.in[body_.operands[0]], &y = l.out[0];
    if (y.elements() == 0) return;
    const phases f = split(l.in);
    const tensor inputs[] = {dense(l.scratch.data(), f.in, nhwc_), l.in[body_.operands[1]]};
    const tensor result = dense(l.scratch.data() + bytes_of(f.in), f.out, nhwc_);
    const auto images = x.lens[0] * f.count();
    l.pool->parallel_for(images, [&](std::int64_t task, unsigned) {
      const auto [from, to] = places_of(f, x, inputs[0], task);
      if (!f.even) std::memset(to.data, 0, static_cast<std::size_t>(product(f.in) / f.in[0]) * sizeof(float));
      copy_tensor(from, to, nullptr);
    });
    launch inner = l;
    inner.in = inputs;
    inner.out = std::span(&result, 1);
    inner.scratch = l.scratch.subspan(bytes_of(f.in) + bytes_of(f.out));
    inner.unread = false;
    inner_->run(inner);
    l.pool->parallel_for(images, [&](std::int64_t task, unsigned) {
      const auto [to, from] = places_of(f, y, result, task);
      copy_tensor(from, to, nullptr);
    });
    if (body_.epilogue) run_epilogue(body_, l.in, y, y, inner.scratch, *l.pool);
  }

 private:
  phases split(std::span<const tensor> in) const {
    return phases_of(attributes_, in[body_.operands[0]].lens, in[body_.operands[1]].lens).value();
  }

  fused_contraction body_;
  op::convolution attributes_;
  std::unique_ptr<kernel> inner_;
  bool nhwc_;  // the phases' layout
};

}  // namespace

std::unique_ptr<kernel> lower_dilated_convolution(const kernel_request& r) {
  auto body = read_contraction(r);
  const auto* const conv = body ? body->op.get_if<op::convolution>() : nullptr;
  if (!conv || body->prologue || r.instruction.results.size() != 1) return nullptr;
  const std::size_t at = body->operands[0], w = body->operands[1];
  const shape &x = r.inputs[at], &y = r.instruction.results[0];
  if (x.type != dtype::f32 || r.inputs[w].type != dtype::f32 || y.type != dtype::f32 || !x.is_constant() ||
      !r.constants[w] || !r.constant_layouts[w].is_standard() || !r.inputs[w].is_constant())
    return nullptr;
  const ints lens = to_ints(x.lens), weights = to_ints(r.inputs[w].lens);
  const auto f = phases_of(*conv, lens, weights);
  if (!f) return nullptr;
  const isa_table& isa = *kiln_eigen_isa();
  const auto cost = [&](const conv_problem& p, bool in, bool out) {
    return isa.conv_cost(p, isa.choose_conv_method(p, in, out), in, out);
  };
  const conv_problem of_phase = problem_of(f->of_phase, f->in, weights, r.near_constants);
  const bool nhwc = cost(of_phase, true, true) < cost(of_phase, false, false);
  // 0: as it is; 1: phases in NCHW; 2: in NHWC
  const auto way = r.decide(3, [&] {
    constexpr double copied = 40;  // products in the time of an element's copy
    const double here = cost(problem_of(*conv, lens, weights, r.near_constants), r.nhwc[at], r.result_nhwc),
                 apart = cost(of_phase, nhwc, nhwc) + copied * static_cast<double>(product(f->in) + product(f->out));
    return apart >= 0.9 * here ? 0 : nhwc ? 2 : 1;
  });
  if (way == 0) return nullptr;
  const auto image = [](const ints& extents) {
    shape s(dtype::f32, {});
    for (const std::int64_t n : extents) s.lens.push_back(n);
    return s;
  };
  basic_instruction<operation> plain = r.instruction;
  plain.op = operation(f->of_phase);
  plain.results[0] = image(f->out);
  kernel_request inner{r.whole,
                       r.graph,
                       plain,
                       {nullptr, r.constants[w]},
                       {layout{}, r.constant_layouts[w]},
                       {image(f->in), r.inputs[w]}};
  inner.nhwc = {way == 2, false};
  inner.result_nhwc = way == 2;
  inner.pool = r.pool;
  inner.tuning = r.tuning;
  inner.near_constants = r.near_constants;
  inner.memory = r.memory;
  inner.derived = r.derived;
  auto of_phases = lower_convolution(inner);
  if (!of_phases) return nullptr;
  return std::make_unique<dilated_convolution_kernel>(std::move(*body), std::move(of_phases), way == 2);
}

}  // namespace kiln::eigen
