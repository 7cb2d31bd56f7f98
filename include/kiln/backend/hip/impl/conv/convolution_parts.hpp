#pragma once
#include <array>
#include <functional>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {

/// Weights of a convolution, [filters, channels, taps...], or of a transposed one, [channels, filters of a group,
/// taps...], as the product reads them: [groups, filters of a group, taps..., channels of a group], as a view of what
/// is there; where only some channels are `together`, [groups, filters, channels / together, taps..., together].
struct filters_view {
  ints lens, strides;
  std::int64_t from = 0, to = 0;  ///< the first element: in the weights, and where they are put
  ints placed;                    ///< steps there; none: one after the other
  filters_view() = default;
  filters_view(const ints& from, const ints& steps, std::int64_t groups, bool backwards, std::int64_t together = 0) {
    const std::int64_t filters = backwards ? from[1] : from[0] / groups,
                       channels = backwards ? from[0] / groups : from[1];
    lens = {groups, filters}, strides = {(backwards ? channels : filters) * steps[0], steps[backwards ? 1 : 0]};
    const std::int64_t channel = steps[backwards ? 0 : 1];
    if (together == 0) together = channels;
    if (together != channels) lens.push_back(channels / together), strides.push_back(together * channel);
    for (std::size_t d = 2; d < from.size(); ++d) lens.push_back(from[d]), strides.push_back(steps[d]);
    lens.push_back(together), strides.push_back(channel);
  }
  /// The same as [channels of a group, taps..., groups, filters of a group].
  static filters_view filters_last(const ints& from, const ints& steps, std::int64_t groups, bool backwards) {
    filters_view v(from, steps, groups, backwards);
    for (ints* of : {&v.lens, &v.strides}) {
      ints turned{of->back()};
      for (std::size_t d = 2; d + 1 < of->size(); ++d) turned.push_back((*of)[d]);
      turned.push_back((*of)[0]), turned.push_back((*of)[1]);
      *of = turned;
    }
    return v;
  }
};

/// What convolutions of both kinds say.
struct convolution_attributes {
  detail::window window;
  std::int64_t group = 1;
  bool backwards = false;  ///< a transposed one
  convolution_attributes(const operation& op, std::size_t rank) {
    const auto take = [&](const auto& o) {
      window = *detail::resolve_window(rank, o.stride, o.dilation, o.pads);
      group = o.group;
    };
    backwards = op.is<op::deconvolution>();
    if (backwards)
      take(*op.get_if<op::deconvolution>());
    else
      take(*op.get_if<op::convolution>());
  }
};

/// The phases of a transposed convolution: places of the result that are a stride apart read the same taps, every
/// stride-th, and form a convolution of their own. Nothing is multiplied that a stride skips.
struct phases {
  gpu::phase_shape form;
  phases() = default;
  /// None without strides, where a dim that has one is dilated or cropped, or where there would be too many.
  phases(const convolution_attributes& a, const shape& weights);
  explicit operator bool() const { return form.parts(); }
  /// Makes the product of a whole result, of `images` at these steps, one whose first batch index counts phases.
  void divide(gemm_problem& p, const struct image_steps& to, std::int64_t images) const;
  /// The same of the phase with this number alone; false where its lines are not evenly spaced.
  bool divide_to(gemm_problem& p, const struct image_steps& to, std::int64_t images, int number) const;
  /// The views of the weights that have the taps of each phase together.
  std::vector<filters_view> order(const ints& lens, const ints& strides, std::int64_t groups) const;
};

/// A convolution's weights in another order: copied once where they are constant, in each run where they are not.
class ordered_filters {
 public:
  /// `order(lens, strides)` gives the views that together are to be dense.
  using view_of = std::function<std::vector<filters_view>(const ints& lens, const ints& strides)>;
  ordered_filters() = default;
  /// The last two dims of a constant's only view get zeros up to these extents, where they have fewer.
  ordered_filters(const kernel_request& r, std::size_t operand, view_of order, const context_pointer& where,
                  std::array<std::int64_t, 2> last = {0, 0});
  /// The operand need not be kept.
  bool keeps_constant() const { return constant_; }
  std::size_t constant_bytes() const { return bytes_; }
  explicit operator bool() const { return order_ != nullptr; }
  void prepare(const tensor& weights) const;
  /// Bytes of a run's scratch, a multiple of what addresses are aligned to.
  std::size_t scratch_bytes(const tensor& weights) const;
  /// The address of the ordered weights; the queue copies them to the scratch first where they are no constant.
  const void* give(device_queue& queue, const tensor& weights, std::span<std::byte> scratch) const;

 private:
  // What is copied from, and where to.
  struct copied {
    tensor from, to;
  };
  std::vector<copied> parts(const tensor& weights, std::byte* to) const;
  view_of order_;
  bool constant_ = false;
  std::size_t bytes_ = 0;
  buffer packed_;
  std::unique_ptr<kernel> copy_;
};

/// Images of few channels as copies that have a run of them at each pixel, the last ones 0, since elements of 16 bits
/// would be moved one by one. What a row of a window meets is one piece of such a copy, so that a window's columns
/// count as channels: they are no taps, and the window moves across pixels by no stride.
class padded_images {
 public:
  static constexpr std::int64_t run = 8;  ///< channels of a copy
  padded_images() = default;
  /// For the images of a convolution that this `serves`.
  padded_images(const kernel_request& r, const convolution_attributes& a, std::size_t weights,
                const context_pointer& where);
  explicit operator bool() const { return where_ != nullptr; }
  /// Whether a convolution is large enough for that: constant weights of at most seven channels and several taps.
  static bool serves(const kernel_request& r, const convolution_attributes& a, std::size_t image, std::size_t weights);
  /// Pixels of a copy's piece for windows of so many columns: those that fill a box of the copy unit where there is one
  /// and the depth becomes at most 1.5 times as long, else as many as the window has.
  static std::int64_t columns_of(std::int64_t columns, const architecture& where);
  /// Pixels of a window's row, those past the last tap have weights of 0.
  std::int64_t together() const { return together_; }
  /// The copy of such images at an address, each pixel with what the row of its window meets.
  tensor copy_of(const tensor& images, std::byte* at) const;
  /// The window over that.
  static detail::window over(detail::window w) {
    w.stride.back() = w.dilation.back() = 1, w.begin.back() = w.end.back() = 0;
    return w;
  }
  std::size_t bytes(const tensor& images) const;
  void prepare(const tensor& images) const { build(images); }
  void give(device_queue& queue, const tensor& images, std::byte* to) const;

 private:
  std::shared_ptr<const function> build(const tensor& images) const;
  context_pointer where_;
  std::int64_t together_ = 0, stride_ = 1, before_ = 0, places_ = 0;
  std::int64_t across() const { return (places_ - 1) * stride_ + together_; }
  std::unique_ptr<by_sizes<std::shared_ptr<const function>>> built_;
};

/// Images whose channels lie apart as copies in which they lie last, a run of them to each pixel: windows would else
/// move them one by one, each as often as there are taps and tiles of filters.
class channels_last_images {
 public:
  explicit channels_last_images(const context_pointer& where) : copy_(make_copy(where)) {}
  /// Whether that is less work for images whose elements windows move `times` times in all, `together` channels side by
  /// side.
  static bool serves(const tensor& images, std::int64_t together, std::int64_t times);
  /// The copy of such images at an address.
  static tensor copy_of(const tensor& images, std::byte* at);
  /// Bytes of that copy, a multiple of what addresses are aligned to.
  static std::size_t bytes(const tensor& images);
  /// Builds the kernel that copies them.
  void prepare(const tensor& images) const {
    const tensor to = copy_of(images, nullptr);
    copy_->prepare({&images, 1}, {&to, 1});
  }
  /// Has the queue copy images to such memory.
  void give(device_queue& queue, const tensor& images, std::byte* to) const;

 private:
  std::unique_ptr<kernel> copy_;
};

/// Steps of a tensor of images; fewer spatial dims are columns, then rows.
struct image_steps {
  std::int64_t image, channel, plane, row, col, planes, rows, cols;
  explicit image_steps(const tensor& t) {
    const std::size_t rank = t.rank(), last = rank - 1;
    const auto step = [&](std::size_t d) { return t.lens[d] == 1 ? 0 : t.strides[d]; };
    image = step(0), channel = step(1), col = step(last), cols = t.lens[last];
    row = rank > 3 ? step(last - 1) : 0, rows = rank > 3 ? t.lens[last - 1] : 1;
    plane = rank > 4 ? step(2) : 0, planes = rank > 4 ? t.lens[2] : 1;
  }
  bool even() const {
    return (rows == 1 || cols == 1 || row == col * cols) &&
           (planes == 1 || rows * cols == 1 || plane == (cols == 1 ? row : col) * rows * cols);
  }
  std::int64_t pixel() const { return cols != 1 ? col : rows != 1 ? row : plane; }
  std::int64_t pixels() const { return planes * rows * cols; }
};

}  // namespace kiln::hip
