#pragma once
#include <limits>

#include "kiln/graph/rewriter.hpp"
#include "kiln/op/linear.hpp"
#include "kiln/op/view/slice.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// Cuts taps off filters that read nothing but padding, for any size that the image may have.
template <class Module> class unread_taps {
 public:
  constexpr unread_taps(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i)
      if (r_.template get_if<op::convolution>({i, 0})) cut(value_id{i, 0});
  }

 private:
  constexpr void cut(value_id v) {
    op::convolution conv = *r_.template get_if<op::convolution>(v);
    const value_id x = r_.input(v, 0), filters = r_.input(v, 1);
    const auto& made = r_.producer(filters);
    if (made.kind == instruction_kind::parameter && !made.is_weight) return;  // each run would copy what is left
    const dims in = r_.shape_of(x).lens, weights = r_.shape_of(filters).lens, out = r_.shape_of(v).lens;
    const auto found = resolve_window(in.size(), conv.stride, conv.dilation, conv.pads);
    if (!found) return;
    window w = *found;
    op::slice kept;
    for (std::size_t d = 0; d + 2 < in.size(); ++d) {
      const dimension length = weights[d + 2];
      if (!length.is_constant() || length.value() < 2 || in[d + 2].max() < 1 || out[d + 2].max() < 1) continue;
      // the bound of an image of any size may be as great as integers are
      if (out[d + 2].max() - 1 > std::numeric_limits<std::int64_t>::max() / w.stride[d]) continue;
      const std::int64_t step = w.dilation[d], last = (out[d + 2].max() - 1) * w.stride[d];
      std::int64_t begin = 0, end = length.value();
      // the last window is the first whose tap `begin` reads the image, the first window the last that reads it with
      // tap `end - 1`; pads stay pads
      for (; begin + 1 < end && last < w.begin[d] && step <= w.begin[d]; ++begin) w.begin[d] -= step;
      const std::int64_t first = -w.begin[d];
      for (; begin + 1 < end && first + (end - 1 - begin) * step >= in[d + 2].max() && step <= w.end[d]; --end)
        w.end[d] -= step;
      if (end - begin == length.value()) continue;
      kept.axes.push_back(static_cast<std::int64_t>(d) + 2);
      kept.starts.push_back(begin), kept.ends.push_back(end);
    }
    if (kept.axes.empty()) return;
    conv.pads.clear();
    for (const std::int64_t p : w.begin) conv.pads.push_back(p);
    for (const std::int64_t p : w.end) conv.pads.push_back(p);
    const text name = r_.producer(v).name;
    const value_id less = r_.add(kept, {filters});
    r_.replace(v, r_.add(conv, {x, less}, name.view()));
    note_.count("convolution");
  }

  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Cuts off the outer taps of a convolution that read padding alone, as those of a 3x3 kernel dilated by 36 over 33 x
/// 33 pixels do: a 1x1 kernel is left. Filters that a run gives stay. What would have been added to a sum is zero,
/// unless a weight is not finite. It runs before `integer_products`, whose convolutions of bytes pad with any byte.
template <class Program> constexpr pass_note cut_unread_taps(Program& p) {
  return run_on_modules<detail::unread_taps>("cut_unread_taps", p);
}

}  // namespace kiln
