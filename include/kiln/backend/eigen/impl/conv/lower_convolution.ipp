#include <algorithm>
#include <cmath>
#include <numeric>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/gates.hpp"
#include "kiln/backend/eigen/impl/conv/convolution_problem.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::eigen {
namespace {

struct channels_epilogue {
  const tiled_epilogue* epilogue;
  std::int64_t channels;
};

void apply_to_channels(void* self, std::int64_t image, std::int64_t channel0, std::int64_t channels,
                       std::int64_t pixel0, std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
  const auto* s = static_cast<const channels_epilogue*>(self);
  s->epilogue->apply(image * s->channels + channel0, channels, pixel0, pixels, c, c_row);
}

void apply_to_pixels(void* self, std::int64_t, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0,
                     std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
  static_cast<const channels_epilogue*>(self)->epilogue->apply(pixel0, pixels, channel0, channels, c, c_row);
}

void activate_channels(void* self, std::int64_t, std::int64_t, std::int64_t channels, std::int64_t, std::int64_t pixels,
                       float* c, std::ptrdiff_t c_row) {
  static_cast<const fused_contraction*>(self)->apply_activation(channels, pixels, c, c_row);
}

constexpr std::string_view method_names[] = {"direct_channels", "im2col",       "depthwise_nchw",
                                             "direct_rows",     "winograd 1x4", "nhwc_gemm",
                                             "winograd 2x2",    "winograd 4x4", "depthwise_nhwc"};

class convolution_kernel final : public kernel {
 public:
  /// Without a method, the one with the least estimated work.
  convolution_kernel(fused_contraction body, const kernel_request& r, std::optional<kernels::conv_method> method)
      : body_(std::move(body)) {
    attributes_ = *body_.op.get_if<op::convolution>();
    near_weights_ = r.near_constants;
    body_.sum_biases(r, 1);
    if (body_.prologue) bind_prologue(r);
    const std::size_t w = body_.operands[1];
    group_outputs_ = r.inputs[w].lens[0] / attributes_.group;
    const literal* weights = r.constants[w];
    if (!weights || !r.constant_layouts[w].is_standard() || !weights->get_shape().is_constant()) return;
    const conv_problem p = problem(sizes(r.inputs[body_.operands[0]]), to_ints(r.inputs[w].lens));
    const isa_table& isa = *kiln_eigen_isa();
    method_ = static_cast<kernels::conv_method>(r.decide(std::size(method_names), [&] {
      return method ? *method : isa.choose_conv_method(p, r.nhwc[body_.operands[0]], r.result_nhwc);
    }));
    packed_ =
        r.packed(static_cast<std::size_t>(isa.conv_weight_floats(p, method_)) * sizeof(float), [&](std::byte* to) {
          isa.pack_conv_weights(*r.pool, p, method_, reinterpret_cast<float*>(to), weights->bytes());
        });
  }

  std::string name() const override {
    return std::string(body_.prologue ? "prologue+" : "") + "convolution" +
           std::string(body_.epilogue ? "+epilogue" : "") + " (" +
           std::string(method_names[static_cast<unsigned>(method_)]) + ")";
  }
  bool packed_input(std::size_t i) const override {
    return (packed_ && i == body_.operands[1]) || (in_prologue(i) && !is_gate(i) && !in_epilogue(i));
  }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t i) const override {
    return i == body_.operands[0]             ? stride_support::nchw_or_nhwc
           : i == body_.operands[1]           ? stride_support::dense
           : in_epilogue(i) || in_prologue(i) ? stride_support::any
                                              : stride_support::dense;
  }
  stride_support output_strides(std::size_t) const override {
    return kernels::writes_strided_channels(method_) ? stride_support::strided_nchw_or_nhwc
                                                     : stride_support::nchw_or_nhwc;
  }
  bool writes_strided_channels(std::size_t, dimension run) const override {
    if (method_ != kernels::conv_method::im2col) return kernels::writes_strided_channels(method_);
    // Each GEMM makes the channels that a run and a group share: one of few rows would repeat im2col for little work.
    if (!run.is_constant() || !group_outputs_.is_constant()) return false;
    const std::int64_t rows = std::gcd(run.value(), group_outputs_.value());
    return rows == group_outputs_.value() || rows > kernels::streamed_rows;
  }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const std::size_t rank = in[body_.operands[0]].rank();
    const tensor y = product_place(out[0], nullptr);
    const kernels::image_layout to = result_layout(y, rank);
    const auto plan = plan_for(in, to, threads);
    std::size_t n = static_cast<std::size_t>(plan->scratch_floats()) * sizeof(float);
    if (!packed_) n += weight_bytes(in) + 64;
    n += gate_bytes(in);
    const tensor whole = seen(channels_joined(out[0], rank), to);
    std::optional<inline_vector<tensor, 40>> room;
    if (body_.epilogue && !tiled_epilogue(body_, seen(in, to), whole, to.nhwc ? 1 : rank - 2).fits())
      n = std::max(n, epilogue_scratch_bytes(body_, channels_split(in, out[0], room), y, out[0], threads));
    return product_bytes(out[0]) + n;
  }

  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const double products_a_second = 75e9 * isa.vector_bytes / 64;
    const tensor &x = in[body_.operands[0]], &w = in[body_.operands[1]];
    if (out[0].elements() == 0) return 0;
    const conv_problem p = problem(x.lens, w.lens);
    const bool nhwc = kernels::reads_nhwc(method_);  // a single pixel is both
    const bool nhwc_in = p.input_pixels() == 1 ? nhwc : image_layout_of(x).nhwc,
               nhwc_out = p.output_pixels() == 1 ? nhwc : result_layout(out[0], x.rank()).nhwc;
    const double products = isa.conv_cost(p, method_, nhwc_in, nhwc_out);
    return std::isfinite(products) ? products / (products_a_second * threads) : 0;
  }

  void run(const launch& l) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const tensor &x = l.in[body_.operands[0]], &w = l.in[body_.operands[1]];
    if (l.out[0].elements() == 0) return;
    std::optional<tensor> other, joined;
    if (l.out[0].type != dtype::f32) other = product_place(l.out[0], l.scratch.data());
    const tensor& y = other ? *other : l.out[0];
    const kernels::image_layout to = result_layout(y, x.rank());
    const auto plan = plan_for(l.in, to, l.pool->size());
    const std::span<std::byte> work = l.scratch.subspan(product_bytes(l.out[0]));
    std::byte* scratch = work.data();
    const float* weights = reinterpret_cast<const float*>(packed_.data());
    if (!packed_) {
      auto* packed = reinterpret_cast<float*>(scratch);
      isa.pack_conv_weights(*l.pool, problem(x.lens, w.lens), method_, packed, w.data);
      weights = packed;
      scratch += (weight_bytes(l.in) + 63) / 64 * 64;
    }
    const kernels::channel_prologue<float> prologue = gated(l.in, reinterpret_cast<float*>(scratch));
    scratch += gate_bytes(l.in);
    kernels::affine_epilogue<float> affine;
    conv_epilogue epilogue;
    std::optional<tiled_epilogue> tiled;
    if (l.out[0].rank() != x.rank()) joined = channels_joined(l.out[0], x.rank());
    const tensor& whole = joined ? *joined : l.out[0];
    channels_epilogue self{nullptr, whole.lens[1]};
    const std::size_t columns = to.nhwc ? 1 : x.rank() - 2;
    if (body_.epilogue && body_.bind(l.in, whole, columns, affine, to.nhwc)) {
      epilogue.affine = &affine;
      epilogue.self = const_cast<fused_contraction*>(&body_);
      if (body_.activation) epilogue.call = to.nhwc ? activate_pixels : activate_channels;
    } else if (body_.epilogue) {
      if (to.nhwc)
        tiled.emplace(body_, seen(l.in, to), seen(whole, to), columns);
      else
        tiled.emplace(body_, l.in, whole, columns);
      self.epilogue = &*tiled;
      if (tiled->fits()) epilogue = {to.nhwc ? apply_to_pixels : apply_to_channels, &self};
    }
    plan->run(*l.pool, x.as<const float>(), weights, y.as<float>(), reinterpret_cast<float*>(scratch), epilogue,
              body_.prologue ? &prologue : nullptr);
    std::optional<inline_vector<tensor, 40>> room;
    if (tiled && !tiled->fits()) run_epilogue(body_, channels_split(l.in, l.out[0], room), y, l.out[0], work, *l.pool);
  }

 private:
  bool in_epilogue(std::size_t input) const {
    return std::find(body_.epilogue_inputs.begin(), body_.epilogue_inputs.end(), input) != body_.epilogue_inputs.end();
  }
  // Whether an input is an operand of the prologue: a constant that the kernel keeps, or a gate.
  bool in_prologue(std::size_t input) const {
    const auto is = [&](const channel_prologue_form::operand& c) { return c.present && !c.uniform && c.at == input; };
    return body_.prologue && (is(body_.prologue->scale) || is(body_.prologue->shift));
  }
  bool has_gate() const { return body_.prologue && body_.prologue->scale.gates; }
  bool is_gate(std::size_t input) const { return has_gate() && body_.prologue->scale.at == input; }

  // Factors of adjacent channels are adjacent to the kernels: bytes for a copy of others.
  std::size_t gate_bytes(std::span<const tensor> in) const {
    if (!has_gate()) return 0;
    const tensor& gate = in[body_.prologue->scale.at];
    if (gate.strides[1] == 1 || gate.lens[1] == 1) return 0;
    return (static_cast<std::size_t>(gate.lens[0] * gate.lens[1]) * sizeof(float) + 63) / 64 * 64;
  }
  // The prologue with the gates of a run.
  kernels::channel_prologue<float> gated(std::span<const tensor> in, float* copy) const {
    kernels::channel_prologue<float> out = prologue_;
    if (!has_gate()) return out;
    const tensor& gate = in[body_.prologue->scale.at];
    const auto* const from = gate.as<const float>();
    const std::int64_t images = gate.lens[0], channels = gate.lens[1];
    out.scale = from, out.scale_step = images == 1 ? 0 : gate.strides[0];
    if (gate_bytes(in) == 0) return out;
    for (std::int64_t i = 0; i < images; ++i)
      for (std::int64_t c = 0; c < channels; ++c)
        copy[i * channels + c] = from[i * gate.strides[0] + c * gate.strides[1]];
    out.scale = copy, out.scale_step = images == 1 ? 0 : channels;
    return out;
  }

  // The prologue as the kernels know it: one factor and one addend a channel.
  void bind_prologue(const kernel_request& r) {
    const channel_prologue_form& form = *body_.prologue;
    const auto channels = static_cast<std::size_t>(r.inputs[body_.operands[1]].lens[1].value());
    const auto bind = [&](const channel_prologue_form::operand& c, buffer& held) -> const float* {
      if (!c.present || c.gates) return nullptr;
      held = r.packed(channels * sizeof(float), [&](std::byte* memory) {
        auto* const to = reinterpret_cast<float*>(memory);
        std::fill_n(to, channels, c.value);
        if (c.uniform) return;
        const argument aligned(*r.constants[c.at]);
        const layout& l = r.constant_layouts[c.at];
        for (std::size_t k = 0; k < channels; ++k)
          to[k] = aligned.as<float>().data()[l.offset.value() + static_cast<std::int64_t>(k) * l.strides[1].value()];
      });
      return reinterpret_cast<const float*>(held.data());
    };
    prologue_ = {bind(form.scale, scale_), bind(form.shift, shift_), form.clamps, form.low, form.high};
  }

  conv_problem problem(const ints& x, const ints& w) const { return problem_of(attributes_, x, w, near_weights_); }

  // Operands as the epilogue reads them: rows are channels and columns pixels, or the reverse where the result is NHWC.
  static tensor seen(const tensor& t, const kernels::image_layout& to) {
    return t.rank() > 2 && to.nhwc ? nhwc_view(t) : t;
  }
  static inline_vector<tensor, 40> seen(std::span<const tensor> in, const kernels::image_layout& to) {
    inline_vector<tensor, 40> out;
    for (const tensor& t : in) out.push_back(seen(t, to));
    return out;
  }

  // A result whose channels are two dims (`writes_strided_channels`) has one more than `rank`; here they are one.
  static tensor channels_joined(const tensor& y, std::size_t rank) {
    if (y.rank() == rank) return y;
    tensor out{y.data, y.type, {y.lens[0], y.lens[1] * y.lens[2]}, {y.strides[0], y.strides[2]}};
    for (std::size_t d = 3; d < y.rank(); ++d) out.lens.push_back(y.lens[d]), out.strides.push_back(y.strides[d]);
    return out;
  }
  // The operands for such a result: those that its epilogue reads have their channels as two dims, too.
  std::span<const tensor> channels_split(std::span<const tensor> in, const tensor& y,
                                         std::optional<inline_vector<tensor, 40>>& room) const {
    const std::size_t rank = in[body_.operands[0]].rank();
    if (y.rank() == rank) return in;
    room.emplace(in);
    for (const std::size_t i : body_.epilogue_inputs) {
      const tensor& t = in[i];
      if (t.rank() != rank) continue;
      const std::int64_t parts = t.lens[1] == 1 ? 1 : y.lens[1], each = t.lens[1] / parts;
      tensor& split = (*room)[i];
      split = {t.data, t.type, {t.lens[0], parts, each}, {t.strides[0], each * t.strides[1], t.strides[1]}};
      for (std::size_t d = 2; d < rank; ++d) split.lens.push_back(t.lens[d]), split.strides.push_back(t.strides[d]);
    }
    return {room->data(), room->size()};
  }

  kernels::image_layout result_layout(const tensor& y, std::size_t rank) const {
    const bool split = y.rank() != rank;
    const kernels::image_layout plain = split ? kernels::image_layout{} : image_layout_of(y);
    if (!kernels::writes_strided_channels(method_) || plain.nhwc || y.dense()) return plain;
    if (!split) return {.nchw = kernels::nchw_strides{y.lens[1], y.strides[0], 0, y.strides[1]}};
    return {.nchw = kernels::nchw_strides{y.lens[2], y.strides[0], y.strides[1], y.strides[2]}};
  }

  std::size_t weight_bytes(std::span<const tensor> in) const {
    const conv_problem p = problem(in[body_.operands[0]].lens, in[body_.operands[1]].lens);
    return static_cast<std::size_t>(kiln_eigen_isa()->conv_weight_floats(p, method_)) * sizeof(float);
  }

  std::shared_ptr<const conv_plan> plan_for(std::span<const tensor> in, const kernels::image_layout& to,
                                            unsigned workers) const {
    const tensor &x = in[body_.operands[0]], &w = in[body_.operands[1]];
    return plans_.of(problem(x.lens, w.lens), workers, method_, image_layout_of(x), to, body_.prologue.has_value());
  }

  fused_contraction body_;
  op::convolution attributes_;
  dimension group_outputs_;
  bool near_weights_ = false;
  kernels::conv_method method_ = kernels::conv_method::im2col;
  buffer packed_;
  buffer scale_, shift_;
  kernels::channel_prologue<float> prologue_;
  conv_plans plans_;
};

// The method with the least estimated work, then those with at most a few times that.
std::vector<kernels::conv_method> methods_worth_timing(const fused_contraction& body, const kernel_request& r) {
  constexpr double most_work = 4;
  const std::size_t x = body.operands[0], w = body.operands[1];
  const auto* conv = body.op.get_if<op::convolution>();
  const conv_problem p = problem_of(*conv, sizes(r.inputs[x]), to_ints(r.inputs[w].lens), r.near_constants);
  const isa_table& isa = *kiln_eigen_isa();
  const auto cost = [&](kernels::conv_method m) { return isa.conv_cost(p, m, r.nhwc[x], r.result_nhwc); };
  std::vector<kernels::conv_method> out = {isa.choose_conv_method(p, r.nhwc[x], r.result_nhwc)};
  for (std::size_t k = 0; k < std::size(method_names); ++k)
    if (const auto m = static_cast<kernels::conv_method>(k); m != out[0] && cost(m) <= most_work * cost(out[0]))
      out.push_back(m);
  return out;
}

}  // namespace

// Whether a first layer, which reads few channels in NCHW, takes less work where its result is NCHW, too: where the
// channels of its result would leave a part of a vector idle.
static bool writes_nchw_for_less(const conv_problem& p) {
  const isa_table& isa = *kiln_eigen_isa();
  const std::int64_t lanes = isa.vector_bytes / static_cast<std::int64_t>(sizeof(float));
  const auto least = [&](bool nhwc) { return isa.conv_cost(p, isa.choose_conv_method(p, false, nhwc), false, nhwc); };
  return p.in_channels < 8 && p.out_channels % lanes != 0 && least(false) < least(true);
}

lower::layout_role role_of_convolution(const op::convolution& conv, const shape& x, const shape& w) {
  using lower::layout_role;
  if (!w.is_constant()) return layout_role::prefers_nhwc;
  const conv_problem p = problem_of(conv, sizes(x), to_ints(w.lens), false);
  if (conv.group == 1) return writes_nchw_for_less(p) ? layout_role::adapts : layout_role::prefers_nhwc;
  // a depthwise convolution takes about as much work in either layout
  if (p.group_inputs() == 1 && p.group_outputs() == 1) return layout_role::propagates;
  return kiln_eigen_isa()->gains_from_nhwc(p) ? layout_role::prefers_nhwc : layout_role::none;
}

bool gate_gains(const program& whole, const module_graph& m, std::uint32_t i) {
  constexpr std::int64_t least_bytes = 256 * 1024;
  const auto found = lower::contraction_of(whole, m, m[i]);
  const auto* conv = found.get_if<op::convolution>();
  if (!conv || !found.operand(1).is_constant()) return false;
  const conv_problem p = problem_of(*conv, sizes(found.operand(0)), to_ints(found.operand(1).lens), false);
  const std::int64_t rows = p.batch * p.output_pixels();
  kernels::gemm_problem<float> product{.m = rows, .n = p.out_channels, .k = p.in_channels};
  product.a_row = p.in_channels;
  return 4 * rows * p.in_channels >= least_bytes && !kiln_eigen_isa()->gains_from_matrix_unit(product);
}

static std::optional<fused_contraction> read_convolution(const kernel_request& r) {
  return read_contraction(r, [&](std::size_t k) {
    return r.constants[k] && r.inputs[k].type == dtype::f32 && lies_by_channel(r.constant_layouts[k]);
  });
}

std::unique_ptr<kernel> lower_convolution(const kernel_request& r) {
  if (auto two = lower_expanded_depthwise(r)) return two;
  if (auto dilated = lower_dilated_convolution(r)) return dilated;
  auto body = read_convolution(r);
  if (!body || !body->op.is<op::convolution>()) return nullptr;
  for (std::size_t k : body->operands)
    if (r.inputs[k].type != dtype::f32) return nullptr;
  if (r.instruction.results.size() != 1) return nullptr;
  if (!r.tuning || !r.constants[body->operands[1]])
    return std::make_unique<convolution_kernel>(std::move(*body), r, std::nullopt);
  const std::vector<kernels::conv_method> methods = methods_worth_timing(*body, r);
  kernel_candidates all;
  for (kernels::conv_method m : methods) all.names.emplace_back(method_names[static_cast<unsigned>(m)]);
  all.make = [&](std::size_t k) {
    return std::make_unique<convolution_kernel>(read_convolution(r).value(), r, methods[k]);
  };
  return make_best(r, all);
}

}  // namespace kiln::eigen
