#include <algorithm>

#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/op/index/arg_min.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Keeps the best so far of a block of neighbors that differ in what is after the axis; a row of which there is only
// one is cut into as many stretches, whose bests are compared at the end.
class arg_extreme_kernel final : public kernel {
 public:
  arg_extreme_kernel(std::int64_t axis, bool last_of_equals, bool least)
      : axis_(axis), last_(last_of_equals), least_(least) {}
  std::string name() const override { return least_ ? "arg_min" : "arg_max"; }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (y.elements() == 0) return;
    const auto axis = static_cast<std::size_t>(normal_axis(axis_, x.rank()));
    const std::int64_t extent = x.lens[axis];
    std::int64_t outer = 1, inner = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= x.lens[d];
    for (std::size_t d = axis + 1; d < x.rank(); ++d) inner *= x.lens[d];
    const std::int64_t blocks = (inner + lanes - 1) / lanes;
    const std::int64_t some =
        std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, extent * std::min<std::int64_t>(inner, lanes)));
    l.pool->parallel_for((outer * blocks + some - 1) / some, [&](std::int64_t task, unsigned) {
      for (std::int64_t at = task * some; at < std::min(outer * blocks, (task + 1) * some); ++at) {
        const std::int64_t o = at / blocks, i = at % blocks * lanes;
        const float* const from = x.as<const float>() + o * extent * inner + i;
        std::int64_t* const to = y.as<std::int64_t>() + o * inner + i;
        if (inner == 1)
          *to = least_ ? along<true>(from, extent) : along<false>(from, extent);
        else
          least_ ? across<true>(from, extent, inner, std::min(lanes, inner - i), to)
                 : across<false>(from, extent, inner, std::min(lanes, inner - i), to);
      }
    });
  }

 private:
  static constexpr std::int64_t lanes = 64;

  // Whether x, which comes later, is chosen before b: see detail::arg_extreme.
  template <bool Least> bool chosen(float x, float b) const {
    const bool x_nan = x != x, b_nan = b != b;
    if (x == b || (x_nan && b_nan)) return last_;
    return !b_nan && (x_nan || (Least ? x < b : x > b));
  }
  // The same without branches, for loops that are to become vectors.
  template <bool Least> static bool better(float x, float b) { return (b == b) & !(Least ? x >= b : x <= b); }

  template <bool Least>
  void across(const float* from, std::int64_t extent, std::int64_t step, std::int64_t n, std::int64_t* to) const {
    float best[lanes];
    std::int32_t place[lanes] = {};
    std::copy_n(from, n, best);
    for (std::int64_t k = 1; k < extent; ++k) {
      const float* const row = from + k * step;
      const auto here = static_cast<std::int32_t>(k);
      if (last_)
        for (std::int64_t j = 0; j < n; ++j) {
          const bool takes = chosen<Least>(row[j], best[j]);
          best[j] = takes ? row[j] : best[j];
          place[j] = takes ? here : place[j];
        }
      else
        for (std::int64_t j = 0; j < n; ++j) {
          const bool takes = better<Least>(row[j], best[j]);
          best[j] = takes ? row[j] : best[j];
          place[j] = takes ? here : place[j];
        }
    }
    std::copy_n(place, n, to);
  }

  template <bool Least> std::int64_t along(const float* from, std::int64_t extent) const {
    constexpr std::int64_t stretches = 16;
    if (last_ || extent < 4 * stretches) {
      std::int64_t at = 0;
      for (std::int64_t k = 1; k < extent; ++k)
        if (chosen<Least>(from[k], from[at])) at = k;
      return at;
    }
    // element k belongs to stretch k % 16
    float best[stretches];
    std::int32_t place[stretches];
    for (std::int32_t j = 0; j < stretches; ++j) best[j] = from[j], place[j] = j;
    const std::int64_t whole = extent / stretches * stretches;
    for (std::int64_t k = stretches; k < whole; k += stretches)
      for (std::int64_t j = 0; j < stretches; ++j) {
        const bool takes = better<Least>(from[k + j], best[j]);
        best[j] = takes ? from[k + j] : best[j];
        place[j] = takes ? static_cast<std::int32_t>(k + j) : place[j];
      }
    std::int64_t at = place[0];
    const auto take = [&](std::int64_t k) {
      const float x = from[k], b = from[at];
      const bool equal = x == b || (x != x && b != b);
      if (equal ? k < at : chosen<Least>(x, b)) at = k;
    };
    for (std::int64_t j = 1; j < stretches; ++j) take(place[j]);
    for (std::int64_t k = whole; k < extent; ++k) take(k);
    return at;
  }

  std::int64_t axis_;
  bool last_, least_;
};

}  // namespace

std::unique_ptr<kernel> lower_arg_extreme(const kernel_request& r) {
  if (r.inputs.size() != 1 || r.inputs[0].type != dtype::f32) return nullptr;
  for (const dimension d : r.inputs[0].lens)
    if (d.is_constant() && d.value() > std::numeric_limits<std::int32_t>::max()) return nullptr;
  if (const auto* const most = r.instruction.op.get_if<op::arg_max>())
    return std::make_unique<arg_extreme_kernel>(most->axis, most->select_last_index, false);
  if (const auto* const least = r.instruction.op.get_if<op::arg_min>())
    return std::make_unique<arg_extreme_kernel>(least->axis, least->select_last_index, true);
  return nullptr;
}

}  // namespace kiln::eigen
