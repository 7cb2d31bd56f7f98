#pragma once
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/linear.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// Writes transposed convolutions at stride 1 whose weights are constant as convolutions.
template <class Module> class unit_stride_deconvolutions {
 public:
  constexpr unit_stride_deconvolutions(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      const value_id v{i, 0};
      if (!r_.template get_if<op::deconvolution>(v)) continue;
      const literal* const weights = r_.constant(r_.input(v, 1));
      if (!weights || weights->has_symbols() || weights->elements() == 0 || weights->get_shape().type == dtype::f64)
        continue;
      const auto conv = mirrored(*r_.template get_if<op::deconvolution>(v), weights->get_shape().lens);
      if (!conv || has_empty_extent(r_.shape_of(v).lens)) continue;
      const text name = r_.producer(v).name;
      const value_id filters = r_.add_literal(turned(*weights, conv->group));
      r_.replace(v, r_.add(*conv, {r_.input(v, 0), filters}, name.view()));
      note_.count("deconvolution");
    }
  }

 private:
  // Whether there may be no element along a spatial dim, where no window of a convolution would fit.
  static constexpr bool has_empty_extent(const dims& lens) {
    for (std::size_t k = 2; k < lens.size(); ++k)
      if (lens[k].min() < 1) return true;
    return false;
  }
  // The convolution whose windows read what reaches an element; nothing where it would read a part of the image.
  static constexpr std::optional<op::convolution> mirrored(const op::deconvolution& d, const dims& weights) {
    const std::size_t axes = weights.size() - 2;
    std::int64_t taps = 1;
    for (std::size_t k = 0; k < axes; ++k) taps *= weights[k + 2].value();
    // a channel for each tap of one filter: most likely they are added as they are (Col2Im), without a product
    if (taps > 1 && weights[1] == dimension(1) && weights[0] == dimension(taps * d.group)) return std::nullopt;
    op::convolution out{.group = d.group};
    out.pads.resize(2 * axes);
    for (std::size_t k = 0; k < axes; ++k) {
      if (!d.stride.empty() && d.stride[k] != 1) return std::nullopt;
      const std::int64_t step = d.dilation.empty() ? 1 : d.dilation[k];
      const std::int64_t reach = (weights[k + 2].value() - 1) * step;
      const std::int64_t extra = d.output_padding.empty() ? 0 : d.output_padding[k];
      const std::int64_t begin = reach - (d.pads.empty() ? 0 : d.pads[k]);
      const std::int64_t end = reach - (d.pads.empty() ? 0 : d.pads[axes + k]) + extra;
      if (begin < 0 || end < 0) return std::nullopt;
      out.pads[k] = begin, out.pads[axes + k] = end;
      out.stride.push_back(1), out.dilation.push_back(step);
    }
    return out;
  }
  // Weights [c, m / group, taps] as filters [m, c / group, taps], the taps in the opposite order.
  static constexpr literal turned(const literal& weights, std::int64_t groups) {
    dims lens = weights.get_shape().lens;
    const std::int64_t channels = lens[0].value() / groups, filters = lens[1].value();
    const std::int64_t taps = weights.elements() / (lens[0].value() * filters);
    const small_vector<float> from = weights.template to<float>();
    small_vector<float> to;
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t m = 0; m < filters; ++m)
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t t = taps; t-- > 0;)
            to.push_back(from[static_cast<std::size_t>(((g * channels + c) * filters + m) * taps + t)]);
    lens[0] = filters * groups;
    lens[1] = channels;
    return literal::of<float>(shape(weights.get_shape().type, lens), to);
  }

  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Writes transposed convolutions at stride 1 whose weights are constant floats of at most 32 bits as convolutions,
/// which have more kernels, and epilogues. Sums are added in another order.
template <class Program> constexpr pass_note deconvolution_as_convolution(Program& p) {
  return run_on_modules<detail::unit_stride_deconvolutions>("deconvolution_as_convolution", p);
}

}  // namespace kiln
