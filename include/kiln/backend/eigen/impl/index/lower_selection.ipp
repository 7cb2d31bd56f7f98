#include <limits>

#include "kiln/backend/eigen/index.hpp"
#include "kiln/op/index/arg_min.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "kiln/op/index/cumsum.hpp"
#include "kiln/op/index/topk.hpp"
#include "kiln/runtime/thread_pool.hpp"

// What goes along an axis: the best elements, places of extremes, running sums and products.
namespace kiln::eigen {
namespace {

template <class Problem> Problem along(const tensor& x, std::int64_t axis) {
  const auto s = detail::split_at(x.lens, axis);
  Problem p;
  p.x = x.data;
  p.outer = s.outer, p.extent = s.extent, p.inner = s.inner;
  return p;
}

class top_kernel final : public kernel {
 public:
  explicit top_kernel(const op::topk& attributes) : attributes_(attributes) {}
  std::string name() const override { return "topk"; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return kiln_eigen_index()->top_scratch(problem(in[0], out[0]), in[0].type, threads);
  }
  void run(const launch& l) const override {
    kernels::top_problem p = problem(l.in[0], l.out[0]);
    p.values = l.out[0].data;
    p.places = l.out[1].as<std::int64_t>();
    kiln_eigen_index()->top(*l.pool, p, l.in[0].type, l.scratch.data());
  }

 private:
  kernels::top_problem problem(const tensor& x, const tensor& y) const {
    auto p = along<kernels::top_problem>(x, attributes_.axis);
    p.k = y.lens[static_cast<std::size_t>(normal_axis(attributes_.axis, x.rank()))];
    p.largest = attributes_.largest;
    return p;
  }
  op::topk attributes_;
};

class extreme_kernel final : public kernel {
 public:
  extreme_kernel(std::int64_t axis, bool last, bool least) : axis_(axis), last_(last), least_(least) {}
  std::string name() const override { return least_ ? "arg_min" : "arg_max"; }
  void run(const launch& l) const override {
    auto p = along<kernels::extreme_problem>(l.in[0], axis_);
    p.places = l.out[0].as<std::int64_t>();
    p.last = last_, p.least = least_;
    kiln_eigen_index()->extremes(*l.pool, p, l.in[0].type);
  }

 private:
  std::int64_t axis_;
  bool last_, least_;
};

class scan_kernel final : public kernel {
 public:
  template <class Op>
  scan_kernel(const Op& op, bool product)
      : axis_(op.axis), exclusive_(op.exclusive), reverse_(op.reverse), product_(product) {}
  std::string name() const override { return product_ ? "cumprod" : "cumsum"; }
  void run(const launch& l) const override {
    auto p = along<kernels::scan_problem>(l.in[0], axis_);
    p.y = l.out[0].data;
    p.exclusive = exclusive_, p.reverse = reverse_;
    kiln_eigen_index()->scan(*l.pool, p, l.in[0].type, product_);
  }

 private:
  std::int64_t axis_;
  bool exclusive_, reverse_, product_;
};

// Places are counted in 32 bits.
bool fits_places(const shape& x) {
  for (const dimension d : x.lens)
    if (d.is_constant() && d.value() > std::numeric_limits<std::int32_t>::max()) return false;
  return true;
}

}  // namespace

std::unique_ptr<kernel> lower_selection(const kernel_request& r) {
  if (r.inputs.size() != 1) return nullptr;
  const dtype type = r.inputs[0].type;
  if (!dtypes::numbers.contains(type)) return nullptr;
  const operation& op = r.instruction.op;
  if (type != dtype::f16 && type != dtype::bf16) {  // which a pass makes f32
    if (const auto* const sum = op.get_if<op::cumsum>()) return std::make_unique<scan_kernel>(*sum, false);
    if (const auto* const product = op.get_if<op::cumprod>()) return std::make_unique<scan_kernel>(*product, true);
  }
  if (!fits_places(r.inputs[0])) return nullptr;
  if (const auto* const best = op.get_if<op::topk>()) return std::make_unique<top_kernel>(*best);
  if (const auto* const most = op.get_if<op::arg_max>())
    return std::make_unique<extreme_kernel>(most->axis, most->select_last_index, false);
  if (const auto* const least = op.get_if<op::arg_min>())
    return std::make_unique<extreme_kernel>(least->axis, least->select_last_index, true);
  return nullptr;
}

}  // namespace kiln::eigen
