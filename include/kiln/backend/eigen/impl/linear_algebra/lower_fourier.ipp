#include <algorithm>
#include <deque>
#include <mutex>

#include "kiln/backend/eigen/linear_algebra.hpp"
#include "kiln/op/linear/dft.hpp"

namespace kiln::eigen {
namespace {

class fourier_kernel final : public kernel {
 public:
  explicit fourier_kernel(const op::dft& transform) : transform_(transform) {}
  std::string name() const override { return "dft (Eigen)"; }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const tensor &x = in[0], &y = out[0];
    const auto bytes = [&](std::int64_t n) {
      const auto plan = plan_for(x, y, n);
      return plan ? plan->scratch_bytes(threads) : 0;
    };
    if (const dimension n = length(x, y); n.is_constant()) return bytes(n.value());
    // the half of a spectrum is that of two lengths
    const std::int64_t bins = y.lens[axis_of(x)];
    return std::max(bytes(2 * bins - 2), bytes(2 * bins - 1));
  }

  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    const dimension told = length(x, y);
    const std::int64_t n = told.is_constant() ? told.value() : l.symbols->evaluate(told);
    const auto plan = plan_for(x, y, n);
    if (!plan) return;
    const std::size_t last = x.rank() - 1, axis = axis_of(x);
    fourier_lines lines;
    lines.count = 1;
    for (std::size_t d = 0; d < last; ++d) {
      if (d == axis) continue;
      lines.count *= x.lens[d];
      lines.lens.push_back(x.lens[d]);
      lines.from_steps.push_back(x.strides[d]);
      lines.to_steps.push_back(y.strides[d]);
    }
    lines.given = transform_.signal_of(x.lens[axis], n, false).given;
    lines.made = y.lens[axis];
    lines.from = x.data, lines.to = y.data;
    lines.from_step = x.strides[axis], lines.from_part = x.strides[last];
    lines.to_step = y.strides[axis], lines.to_part = y.strides[last];
    plan->run(*l.pool, lines, l.scratch.data());
  }

 private:
  std::size_t axis_of(const tensor& x) const {
    return static_cast<std::size_t>(normal_axis(transform_.axis, x.rank()));
  }
  dimension length(const tensor& x, const tensor& y) const {
    const std::size_t axis = axis_of(x);
    return transform_.inverse || !transform_.one_sided ? dimension(y.lens[axis]) : transform_.length_of(x.lens[axis]);
  }

  // The plan for these operands, kept for as long as a few others were not wanted; null where there is nothing to do.
  std::shared_ptr<const fourier_plan> plan_for(const tensor& x, const tensor& y, std::int64_t n) const {
    const fourier_kind kind{x.type, n, x.lens.back() == 1, transform_.inverse, transform_.one_sided};
    if (kind.length == 0 || y.elements() == 0) return nullptr;
    if (kind.length > fourier_kind::most_length)
      raise(fault::of(errc::limit, "the length of a Fourier transform", fourier_kind::most_length, kind.length));
    constexpr std::size_t most = 8;
    const std::lock_guard lock(mutex_);
    for (const auto& [of, plan] : plans_)
      if (of == kind) return plan;
    if (plans_.size() == most) plans_.pop_front();
    plans_.emplace_back(kind, kiln_eigen_linear_algebra()->plan_fourier(kind));
    return plans_.back().second;
  }

  op::dft transform_;
  mutable std::mutex mutex_;
  mutable std::deque<std::pair<fourier_kind, std::shared_ptr<const fourier_plan>>> plans_;
};

}  // namespace

std::unique_ptr<kernel> lower_fourier(const kernel_request& r) {
  const auto* const transform = r.instruction.op.get_if<op::dft>();
  if (!transform || (r.inputs[0].type != dtype::f32 && r.inputs[0].type != dtype::f64)) return nullptr;
  return std::make_unique<fourier_kernel>(*transform);
}

}  // namespace kiln::eigen
