#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <tuple>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

using kernels::conv_problem;

/// Extents of an image for the choice of method alone: unknown ones are taken as a batch of 1 and as 32.
inline ints sizes(const shape& s) {
  ints x;
  for (dimension d : s.lens) x.push_back(d.is_constant() ? d.raw() : x.size() < 1 ? 1 : 32);
  return x;
}

/// A convolution of images and weights of such extents.
inline conv_problem problem_of(const op::convolution& conv, const ints& x, const ints& w, bool near_weights) {
  conv_problem p;
  p.near_weights = near_weights;
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

/// Plans of convolutions, made once for each problem; the last few are kept, so that a run with extents of late
/// allocates nothing. Several threads may ask at once.
class conv_plans {
 public:
  std::shared_ptr<const conv_plan> of(const conv_problem& problem, unsigned workers, kernels::conv_method method,
                                      const kernels::image_layout& from, const kernels::image_layout& to,
                                      bool has_prologue) const {
    const auto sizes = [](const conv_problem& p) {
      return std::tie(p.batch, p.in_channels, p.out_channels, p.groups, p.input, p.kernel, p.stride, p.dilation,
                      p.pad_begin, p.pad_end);
    };
    const std::lock_guard lock(mutex_);
    for (const entry& e : plans_)
      if (e.workers == workers && e.from == from && e.to == to && e.method == method &&
          e.has_prologue == has_prologue && sizes(e.problem) == sizes(problem))
        return e.plan;
    constexpr std::size_t most = 32;
    if (plans_.size() == most) plans_.pop_front();
    plans_.push_back({problem, from, to, workers, method, has_prologue,
                      std::shared_ptr<const conv_plan>(
                          kiln_eigen_isa()->plan_conv(problem, workers, method, from, to, has_prologue))});
    return plans_.back().plan;
  }

 private:
  struct entry {
    conv_problem problem;
    kernels::image_layout from, to;
    unsigned workers;
    kernels::conv_method method;
    bool has_prologue;
    std::shared_ptr<const conv_plan> plan;
  };
  mutable std::mutex mutex_;
  mutable std::deque<entry> plans_;
};

/// Dilated convolutions at stride 1 whose phases, as images of their own, are estimated to take less work.
std::unique_ptr<kernel> lower_dilated_convolution(const kernel_request& r);

/// `conv_epilogue::call` for the activation of a `fused_contraction` over pixels in NHWC.
inline void activate_pixels(void* self, std::int64_t, std::int64_t, std::int64_t channels, std::int64_t,
                            std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
  static_cast<const fused_contraction*>(self)->apply_activation(pixels, channels, c, c_row);
}

}  // namespace kiln::eigen
