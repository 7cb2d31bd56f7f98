#include <algorithm>
#include <deque>
#include <mutex>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::eigen {
namespace {

using kernels::conv_problem;

struct image_tail {
  const epilogue* tail;
  std::int64_t channels;
};

void apply_to_channels(void* self, std::int64_t image, std::int64_t channel0, std::int64_t channels,
                       std::int64_t pixel0, std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
  const auto* s = static_cast<const image_tail*>(self);
  s->tail->apply(image * s->channels + channel0, channels, pixel0, pixels, c, c_row);
}

void apply_to_pixels(void* self, std::int64_t, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0,
                     std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
  static_cast<const image_tail*>(self)->tail->apply(pixel0, pixels, channel0, channels, c, c_row);
}

void rest_of_channels(void* self, std::int64_t, std::int64_t, std::int64_t channels, std::int64_t, std::int64_t pixels,
                      float* c, std::ptrdiff_t c_row) {
  static_cast<const product_body*>(self)->apply_rest(channels, pixels, c, c_row);
}

void rest_of_pixels(void* self, std::int64_t, std::int64_t, std::int64_t channels, std::int64_t, std::int64_t pixels,
                    float* c, std::ptrdiff_t c_row) {
  static_cast<const product_body*>(self)->apply_rest(pixels, channels, c, c_row);
}

// The sizes of an image: they only steer the choice of method, so unknown ones are taken as 1 image of 32.
ints sizes(const shape& s) {
  ints x;
  for (dimension d : s.lens) x.push_back(d.is_constant() ? d.raw() : x.size() < 1 ? 1 : 32);
  return x;
}

conv_problem problem_of(const op::convolution& conv, const ints& x, const ints& w) {
  conv_problem p;
  p.batch = x[0];
  p.in_channels = x[1];
  p.out_channels = w[0];
  p.groups = conv.group;
  const std::size_t axes = x.size() - 2;
  for (std::size_t d = 0; d < axes; ++d) {
    const std::size_t to = 3 - axes + d;
    p.input[to] = x[d + 2];
    p.kernel[to] = w[d + 2];
    if (!conv.stride.empty()) p.stride[to] = conv.stride[d];
    if (!conv.dilation.empty()) p.dilation[to] = conv.dilation[d];
    if (!conv.pads.empty()) {
      p.pad_begin[to] = conv.pads[d];
      p.pad_end[to] = conv.pads[axes + d];
    }
  }
  return p;
}

constexpr std::string_view method_names[] = {"channels", "pixels",       "planes",       "rows",
                                             "images",   "winograd 2x2", "winograd 4x4", "depthwise"};

class convolution_kernel final : public kernel {
 public:
  /// With a method other than that of the least estimate.
  convolution_kernel(product_body body, const kernel_request& r, std::optional<kernels::conv_method> method)
      : body_(std::move(body)) {
    attributes_ = *body_.product.get_if<op::convolution>();
    body_.sum_biases(r, 1);
    const std::size_t w = body_.operands[1];
    const literal* weights = r.constants[w];
    if (!weights || !r.constant_layouts[w].is_standard() || !weights->get_shape().is_constant()) return;
    const conv_problem p = problem_of(attributes_, sizes(r.inputs[body_.operands[0]]), to_ints(r.inputs[w].lens));
    const isa_table& isa = *kiln_eigen_isa();
    method_ = method ? *method : isa.choose_conv_method(p, r.channels_last[body_.operands[0]], r.result_channels_last);
    packed_ = buffer::allocate(static_cast<std::size_t>(isa.conv_weight_floats(p, method_)) * sizeof(float));
    const argument aligned(*weights);
    isa.pack_conv_weights(*r.pool, p, method_, reinterpret_cast<float*>(packed_.data()), aligned.as<float>().data());
  }

  std::string name() const override {
    return "convolution" + std::string(body_.tail ? "+epilogue" : "") + " (" +
           std::string(method_names[static_cast<unsigned>(method_)]) + ")";
  }
  bool packed_input(std::size_t i) const override { return packed_ && i == body_.operands[1]; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t i) const override {
    return std::find(body_.extra.begin(), body_.extra.end(), i) != body_.extra.end() && i != body_.operands[0] &&
                   i != body_.operands[1]
               ? stride_support::any
           : i == body_.operands[0] ? stride_support::images
                                    : stride_support::dense;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::images; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const auto plan = plan_for(in, product_place(out[0], nullptr), threads);
    std::size_t n = static_cast<std::size_t>(plan->scratch_floats()) * sizeof(float);
    if (!packed_) n += weight_bytes(in) + 64;
    const tensor y = seen(out[0], out[0]);
    if (body_.tail && !epilogue(body_, seen(in, out[0]), y, inner(out[0])).fits())
      n = std::max(n, tail_scratch_bytes(body_, in, product_place(out[0], nullptr), out[0], threads));
    return product_bytes(out[0]) + n;
  }

  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const double products_a_second = 75e9 * isa.vector_bytes / 64;
    const tensor &x = in[body_.operands[0]], &w = in[body_.operands[1]];
    if (out[0].elements() == 0) return 0;
    const bool in_last = image_layout_of(x).channels_last, out_last = image_layout_of(out[0]).channels_last;
    return isa.conv_cost(problem_of(attributes_, x.lens, w.lens), method_, in_last, out_last) /
           (products_a_second * threads);
  }

  void run(const launch& l) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const tensor &x = l.in[body_.operands[0]], &w = l.in[body_.operands[1]];
    if (l.out[0].elements() == 0) return;
    const tensor y = product_place(l.out[0], l.scratch.data());
    const auto plan = plan_for(l.in, y, l.pool->size());
    const std::span<std::byte> behind = l.scratch.subspan(product_bytes(l.out[0]));
    std::byte* scratch = behind.data();
    const float* weights = reinterpret_cast<const float*>(packed_.data());
    if (!packed_) {
      auto* packed = reinterpret_cast<float*>(scratch);
      isa.pack_conv_weights(*l.pool, problem_of(attributes_, x.lens, w.lens), method_, packed, w.as<const float>());
      weights = packed;
      scratch += (weight_bytes(l.in) + 63) / 64 * 64;
    }
    kernels::affine_tail<float> affine;
    conv_tail follow;
    std::optional<epilogue> tail;
    image_tail self{nullptr, y.lens[1]};
    if (body_.tail) {
      const bool last = image_layout_of(y).channels_last;
      const std::size_t columns = last ? 1 : y.rank() - 2;
      // a list of as many operands as there may be takes as long to make as a small image's convolution
      constexpr std::size_t few = 4;
      tensor turned[few];
      std::optional<inline_vector<tensor, 40>> all;
      std::span<const tensor> in = l.in;
      if (last && in.size() <= few) {
        for (std::size_t i : body_.extra) turned[i] = in[i].rank() == y.rank() ? with_channels_last(in[i]) : in[i];
        in = {turned, in.size()};
      } else if (last) {
        in = all.emplace(seen(l.in, y));
      }
      const tensor out = last ? seen(l.out[0], l.out[0]) : l.out[0];
      if (body_.bind(in, out, columns, affine)) {
        follow.affine = &affine;
        follow.self = const_cast<product_body*>(&body_);
        if (body_.rest) follow.call = last ? rest_of_pixels : rest_of_channels;
      } else {
        tail.emplace(body_, in, out, columns);
        self.tail = &*tail;
        if (tail->fits()) follow = {last ? apply_to_pixels : apply_to_channels, &self};
      }
    }
    plan->run(*l.pool, x.as<const float>(), weights, y.as<float>(), reinterpret_cast<float*>(scratch), follow);
    if (tail && !tail->fits()) run_tail(body_, l.in, y, l.out[0], behind, *l.pool);
  }

 private:
  // Operands of the epilogue as it sees them: rows are channels and columns pixels, or the reverse where the result's
  // channels are last.
  static tensor seen(const tensor& t, const tensor& y) {
    return t.rank() == y.rank() && image_layout_of(y).channels_last ? with_channels_last(t) : t;
  }
  static inline_vector<tensor, 40> seen(std::span<const tensor> in, const tensor& y) {
    inline_vector<tensor, 40> out;
    for (const tensor& t : in) out.push_back(seen(t, y));
    return out;
  }
  static std::size_t inner(const tensor& y) { return image_layout_of(y).channels_last ? 1 : y.rank() - 2; }

  std::size_t weight_bytes(std::span<const tensor> in) const {
    const conv_problem p = problem_of(attributes_, in[body_.operands[0]].lens, in[body_.operands[1]].lens);
    return static_cast<std::size_t>(kiln_eigen_isa()->conv_weight_floats(p, method_)) * sizeof(float);
  }

  // Plans are made once for each set of sizes and the last few are kept: a run whose sizes were seen lately allocates
  // nothing.
  std::shared_ptr<const conv_plan> plan_for(std::span<const tensor> in, const tensor& out, unsigned workers) const {
    const ints &x = in[body_.operands[0]].lens, &w = in[body_.operands[1]].lens;
    const kernels::image_layout from = image_layout_of(in[body_.operands[0]]), to = image_layout_of(out);
    const std::lock_guard lock(mutex_);
    for (const entry& e : plans_)
      if (e.x == x && e.w == w && e.from == from && e.to == to && e.workers == workers) return e.plan;
    constexpr std::size_t most = 32;
    if (plans_.size() == most) plans_.pop_front();
    plans_.push_back({x, w, from, to, workers,
                      std::shared_ptr<const conv_plan>(
                          kiln_eigen_isa()->plan_conv(problem_of(attributes_, x, w), workers, method_, from, to))});
    return plans_.back().plan;
  }

  struct entry {
    ints x, w;
    kernels::image_layout from, to;
    unsigned workers;
    std::shared_ptr<const conv_plan> plan;
  };
  product_body body_;
  op::convolution attributes_;
  kernels::conv_method method_ = kernels::conv_method::pixels;
  buffer packed_;
  mutable std::mutex mutex_;
  mutable std::deque<entry> plans_;
};

// The method of the least estimate and then those that take at most a few times its work.
std::vector<kernels::conv_method> methods_worth_timing(const product_body& body, const kernel_request& r) {
  constexpr double most_work = 4;
  const std::size_t x = body.operands[0], w = body.operands[1];
  const auto* conv = body.product.get_if<op::convolution>();
  const conv_problem p = problem_of(*conv, sizes(r.inputs[x]), to_ints(r.inputs[w].lens));
  const isa_table& isa = *kiln_eigen_isa();
  const auto cost = [&](kernels::conv_method m) {
    return isa.conv_cost(p, m, r.channels_last[x], r.result_channels_last);
  };
  std::vector<kernels::conv_method> out = {isa.choose_conv_method(p, r.channels_last[x], r.result_channels_last)};
  for (std::size_t k = 0; k < std::size(method_names); ++k)
    if (const auto m = static_cast<kernels::conv_method>(k); m != out[0] && cost(m) <= most_work * cost(out[0]))
      out.push_back(m);
  return out;
}

}  // namespace

// Whether a first layer, whose few channels are planes, takes less work where its result is planes too: its outputs
// then leave no part of a vector idle.
static bool prefers_planes(const conv_problem& p) {
  const isa_table& isa = *kiln_eigen_isa();
  const std::int64_t lanes = isa.vector_bytes / static_cast<std::int64_t>(sizeof(float));
  const auto least = [&](bool last) { return isa.conv_cost(p, isa.choose_conv_method(p, false, last), false, last); };
  return p.in_channels < 8 && p.out_channels % lanes != 0 && least(false) < least(true);
}

image_role role_of_convolution(const op::convolution& conv, const shape& x, const shape& w) {
  if (!w.is_constant()) return image_role::gains;
  const conv_problem p = problem_of(conv, sizes(x), to_ints(w.lens));
  if (conv.group == 1) return prefers_planes(p) ? image_role::turns : image_role::gains;
  // its own work is alike in both layouts
  if (p.group_inputs() == 1 && p.group_outputs() == 1) return image_role::follows;
  return kiln_eigen_isa()->gains_from_channels_last(p) ? image_role::gains : image_role::none;
}

std::unique_ptr<kernel> lower_convolution(const kernel_request& r) {
  auto body = split_product(r.whole, r.instruction);
  if (!body || !body->product.is<op::convolution>()) return nullptr;
  for (std::size_t k : body->operands)
    if (r.inputs[k].type != dtype::f32) return nullptr;
  if (r.instruction.results.size() != 1) return nullptr;
  if (!r.tuning || !r.constants[body->operands[1]])
    return std::make_unique<convolution_kernel>(std::move(*body), r, std::nullopt);
  const std::vector<kernels::conv_method> methods = methods_worth_timing(*body, r);
  kernel_candidates all;
  for (kernels::conv_method m : methods) all.names.emplace_back(method_names[static_cast<unsigned>(m)]);
  all.make = [&](std::size_t k) {
    return std::make_unique<convolution_kernel>(split_product(r.whole, r.instruction).value(), r, methods[k]);
  };
  return make_best(r, all);
}

}  // namespace kiln::eigen
