#include <algorithm>
#include <cmath>

#include "kiln/backend/eigen/impl/conv/convolution_problem.hpp"
#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/core/argument.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Columns are made for so many floats at a time, which stay in the caches until they are added.
constexpr std::int64_t band_floats = 512 * 1024;

// Missing spatial dims have extent 1.
struct sizes_of_deconvolution {
  std::int64_t batch, group, channels, filters, columns, result;  // channels and filters of a group
  kernels::column_problem of_filter;

  sizes_of_deconvolution(const op::deconvolution& d, const ints& x, const ints& w)
      : batch(x[0]), group(d.group), channels(x[1] / d.group), filters(w[1]) {
    kernels::column_problem& f = of_filter;
    for (std::size_t k = 0, axes = x.size() - 2; k < axes; ++k) {
      const std::size_t to = 3 - axes + k;
      f.in[to] = x[k + 2], f.kernel[to] = w[k + 2];
      if (!d.stride.empty()) f.stride[to] = d.stride[k];
      if (!d.dilation.empty()) f.dilation[to] = d.dilation[k];
      if (!d.pads.empty()) f.begin[to] = d.pads[k];
      f.out[to] = f.stride[to] * (f.in[to] - 1) + f.dilation[to] * (f.kernel[to] - 1) + 1 - f.begin[to] +
                  (d.output_padding.empty() ? 0 : d.output_padding[k]) - (d.pads.empty() ? 0 : d.pads[axes + k]);
    }
    columns = filters * f.taps();
    result = f.out[0] * f.out[1] * f.out[2];
  }
  std::int64_t rows() const { return of_filter.in[0] * of_filter.in[1]; }
  std::int64_t pixels() const { return rows() * of_filter.in[2]; }
};

// Whether the weights of as many columns as channels, `all` in all groups, are 1 where both are the same, else 0.
bool adds_channels(const float* weights, std::int64_t all, std::int64_t channels) {
  bool same = channels > 1;
  for (std::int64_t i = 0; same && i < all; ++i)
    same = weights[i] == (i / channels % channels == i % channels ? 1.0F : 0.0F);
  return same;
}

// Adds the columns of so many filters, `of(filter)`. Where filters are few, threads share the results of each.
template <class Of> void add_columns(thread_pool& pool, std::int64_t filters, Of&& of) {
  if (filters == 0) return;
  const kernels::column_problem first = of(0);
  const int axis = first.out[0] > 1 ? 0 : first.out[1] > 1 ? 1 : 2;
  std::int64_t inner = 1;
  for (int d = axis + 1; d < 3; ++d) inner *= first.out[d];
  constexpr std::int64_t least_elements = 4096;
  const std::int64_t wanted = 4 * static_cast<std::int64_t>(pool.size()), all = first.out[axis],
                     parts = filters >= wanted || pool.size() == 1
                                 ? 1
                                 : std::clamp<std::int64_t>(
                                       std::min((wanted + filters - 1) / filters, all * inner / least_elements), 1,
                                       std::max<std::int64_t>(1, all));
  pool.parallel_for(filters * parts, [&](std::int64_t task, unsigned) {
    kernels::column_problem p = of(task / parts);
    const std::int64_t part = task % parts, begin = all * part / parts;
    p.out[axis] = all * (part + 1) / parts - begin;
    p.begin[axis] += begin;
    p.y += begin * inner;
    kiln_eigen_isa()->add_columns(p);
  });
}

// GEMM and col2im: a GEMM of the weights and a band of input rows gives what each input element adds to each tap of
// each filter, and each filter's task adds these to the result (col2im). A band is small enough for its columns to stay
// in the caches. Where a filter reads one channel, its columns are the channel times a weight each; where each of its
// taps has a channel of its own and weight 1 (ONNX Col2Im), they are the channels.
class deconvolution_kernel final : public kernel {
 public:
  deconvolution_kernel(const op::deconvolution& attributes, const kernel_request& r) : attributes_(attributes) {
    const literal* const weights = r.constants[1];
    if (!weights || !r.constant_layouts[1].dense()) return;
    const dims& lens = r.inputs[1].lens;
    const std::int64_t all = product(to_ints(lens)), channels = lens[0].value() / attributes_.group;
    if (all == 0) return;
    packed_ = r.packed(static_cast<std::size_t>(all) * sizeof(float), [&](std::byte* memory) {
      const argument aligned(*weights);
      const float* const from = aligned.as<float>().data() + r.constant_layouts[1].offset.value();
      auto* const to = reinterpret_cast<float*>(memory);
      const std::int64_t columns = all / lens[0].value();  // of a group: its filters' taps
      r.pool->parallel_for(attributes_.group * columns, [&](std::int64_t task, unsigned) {
        const std::int64_t g = task / columns, column = task % columns;
        for (std::int64_t c = 0; c < channels; ++c)
          to[task * channels + c] = from[(g * channels + c) * columns + column];
      });
    });
    const std::int64_t columns = all / lens[0].value();
    const auto* const packed = reinterpret_cast<const float*>(packed_.data());
    plain_columns_ = columns == channels && adds_channels(packed, all, channels);
  }
  std::string name() const override { return std::string("deconvolution") + (packed_ ? " (packed)" : ""); }
  bool packed_input(std::size_t i) const override { return packed_ && i == 1; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned threads) const override {
    const sizes s = sizes_for(in);
    if (s.channels == 1 || plain_columns_) return 0;
    const std::int64_t pixels = s.band() * s.of_filter.in[2], parts = s.apart(threads) ? threads : 1;
    const std::int64_t gemm = kiln_eigen_isa()->gemm_unpacked_scratch_floats(s.columns, pixels, s.channels, threads);
    return static_cast<std::size_t>(parts * s.band_size() + gemm) * sizeof(float);
  }
  void run(const launch& l) const override {
    const sizes s = sizes_for(l.in);
    auto* const y = l.out[0].as<float>();
    const std::int64_t rows = s.rows(), pixels = s.pixels(), taps = s.of_filter.taps();
    if (l.out[0].elements() == 0) return;
    if (pixels == 0 || s.channels == 0) {
      std::fill_n(y, l.out[0].elements(), 0.0F);
      return;
    }
    const auto* const weights = packed_ ? reinterpret_cast<const float*>(packed_.data()) : l.in[1].as<const float>();
    const isa_table& isa = *kiln_eigen_isa();
    if (s.channels == 1 || plain_columns_) {
      add_columns(*l.pool, s.batch * s.group * s.filters, [&](std::int64_t filter) {
        kernels::column_problem p = s.of_filter;
        const auto* const x = l.in[0].as<const float>();
        if (plain_columns_) {
          p.columns = x + filter * taps * pixels;
          p.step = pixels;
        } else {
          p.columns = x + filter / s.filters * pixels;
          p.weights = weights + filter % (s.group * s.filters) * taps;
        }
        p.rows = rows;
        p.y = y + filter * s.result;
        return p;
      });
      return;
    }
    const std::int64_t entries = s.batch * s.group;
    const bool apart = s.apart(l.pool->size());
    auto* const all_columns = reinterpret_cast<float*>(l.scratch.data());
    auto* const scratch = all_columns + s.band_size() * (apart ? l.pool->size() : 1);
    const auto add_entry = [&](std::int64_t entry, float* columns) {
      for (std::int64_t row = 0; row < rows; row += s.band()) {
        const std::int64_t group = entry % s.group, count = std::min(s.band(), rows - row);
        kernels::gemm_problem<float> p;
        p.m = s.columns, p.n = count * s.of_filter.in[2], p.k = s.channels;
        if (packed_) {
          p.a = weights + group * s.columns * s.channels;
          p.a_row = s.channels;
        } else {
          p.a = weights + group * s.channels * s.columns;
          p.a_row = 1, p.a_col = s.columns;
        }
        p.b = l.in[0].as<const float>() + entry * s.channels * pixels + row * s.of_filter.in[2];
        p.b_row = pixels;
        p.c = columns, p.c_row = p.n;
        isa.gemm_unpacked(*l.pool, p, scratch, {});
        add_columns(*l.pool, s.filters, [&](std::int64_t filter) {
          kernels::column_problem one = s.of_filter;
          one.columns = columns + filter * taps * p.n;
          one.step = p.n;
          one.row = row, one.rows = count;
          one.y = y + (entry * s.filters + filter) * s.result;
          return one;
        });
      }
    };
    if (apart)  // each thread's calls run in place
      return l.pool->parallel_for(entries, [&](std::int64_t entry, unsigned worker) {
        add_entry(entry, all_columns + worker * s.band_size());
      });
    for (std::int64_t entry = 0; entry < entries; ++entry) add_entry(entry, all_columns);
  }

 private:
  struct sizes : sizes_of_deconvolution {
    using sizes_of_deconvolution::sizes_of_deconvolution;
    std::int64_t band() const {
      return std::clamp<std::int64_t>(band_floats / std::max<std::int64_t>(1, columns * of_filter.in[2]), 1,
                                      std::max<std::int64_t>(1, rows()));
    }
    std::int64_t band_size() const { return kernels::round_up(columns * band() * of_filter.in[2], 16); }
    // Whether threads share images and groups, not the work of each.
    bool apart(unsigned threads) const {
      const std::int64_t entries = batch * group;
      return threads > 1 && (entries % threads == 0 || entries >= 4 * static_cast<std::int64_t>(threads));
    }
  };
  sizes sizes_for(std::span<const tensor> in) const { return {attributes_, in[0].lens, in[1].lens}; }

  op::deconvolution attributes_;
  buffer packed_;
  bool plain_columns_ = false;  // the weights are those of an identity
};

// A transposed convolution as a convolution at stride 1: results that are a stride apart, a phase, read the same taps
// of the inputs around, so that a filter becomes one for each phase. The phases are columns without overlap. Along a
// dim with stride 1 there is one phase, which may be dilated.
class phased_deconvolution {
 public:
  /// Empty where a dim has both a stride and a dilation.
  static std::optional<phased_deconvolution> of(const op::deconvolution& d, const ints& x, const ints& w, bool near) {
    phased_deconvolution f{sizes_of_deconvolution(d, x, w)};
    kernels::column_problem& own = f.of_filter_ = f.whole_.of_filter;
    conv_problem& p = f.conv_;
    p.batch = x[0], p.in_channels = x[1], p.groups = d.group, p.near_weights = near;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::int64_t stride = own.stride[k], taps = own.kernel[k];
      if (stride > 1 && taps > 1 && own.dilation[k] != 1) return {};
      const std::int64_t dilation = taps > 1 ? own.dilation[k] : 1;
      p.kernel[k] = (taps + stride - 1) / stride;
      p.dilation[k] = stride == 1 ? dilation : 1;
      own.kernel[k] = std::min(taps, stride), own.dilation[k] = 1;
      // results before the first one and after the last one are left out where whole strides of them are
      const std::int64_t reach = p.span(k) - 1, before = std::min(own.begin[k] / stride, reach),
                         made = (own.out[k] - 1 + own.begin[k]) / stride + 1 - before;
      own.begin[k] -= before * stride;
      p.input[k] = own.in[k];
      p.pad_begin[k] = reach - before;
      p.pad_end[k] = std::max<std::int64_t>(0, made + before - own.in[k]);
      own.in[k] = p.output(k);
    }
    p.out_channels = d.group * f.whole_.filters * own.taps();
    return f;
  }

  const conv_problem& convolution() const { return conv_; }
  const sizes_of_deconvolution& whole() const { return whole_; }
  /// Of the phases of a filter.
  const kernels::column_problem& of_filter() const { return of_filter_; }
  std::int64_t phases() const { return conv_.out_channels; }

  /// Weights [c, m / group, kernel] as those of the convolution.
  std::vector<float> filters(const float* from) const {
    const kernels::column_problem &all = whole_.of_filter, &own = of_filter_;
    std::vector<float> to;
    to.reserve(static_cast<std::size_t>(phases() * conv_.depth()));
    for (std::int64_t filter = 0; filter < whole_.group * whole_.filters; ++filter)
      for (std::int64_t phase = 0; phase < own.taps(); ++phase)
        for (std::int64_t c = 0; c < whole_.channels; ++c)
          for (std::int64_t window = 0; window < conv_.taps(); ++window) {
            const std::int64_t channel = filter / whole_.filters * whole_.channels + c;
            std::int64_t tap = 0, phase_rest = phase, rest = window, scale = 1;
            for (std::size_t k = 3; k-- > 0; scale *= all.kernel[k]) {
              const std::int64_t at = conv_.kernel[k] - 1 - rest % conv_.kernel[k],  // windows are mirrored
                  one = phase_rest % own.kernel[k] + at * all.stride[k];
              rest /= conv_.kernel[k], phase_rest /= own.kernel[k];
              tap = one < all.kernel[k] && tap >= 0 ? tap + one * scale : -1;
            }
            to.push_back(tap < 0 ? 0.0F
                                 : from[(channel * whole_.filters + filter % whole_.filters) * all.taps() + tap]);
          }
    return to;
  }

 private:
  explicit phased_deconvolution(const sizes_of_deconvolution& whole) : whole_(whole) {}

  sizes_of_deconvolution whole_;
  kernels::column_problem of_filter_{};
  conv_problem conv_;
};

class phased_deconvolution_kernel final : public kernel {
 public:
  phased_deconvolution_kernel(const op::deconvolution& attributes, const phased_deconvolution& f,
                              const kernel_request& r)
      : attributes_(attributes), near_weights_(r.near_constants) {
    const isa_table& isa = *kiln_eigen_isa();
    const conv_problem& p = f.convolution();
    method_ = isa.choose_conv_method(p, false, false);
    packed_ =
        r.packed(static_cast<std::size_t>(isa.conv_weight_floats(p, method_)) * sizeof(float), [&](std::byte* to) {
          const argument aligned(*r.constants[1]);
          const std::vector<float> filters =
              f.filters(aligned.as<float>().data() + r.constant_layouts[1].offset.value());
          isa.pack_conv_weights(*r.pool, p, method_, reinterpret_cast<float*>(to),
                                reinterpret_cast<const std::byte*>(filters.data()));
        });
  }
  std::string name() const override { return "deconvolution (packed phases)"; }
  bool packed_input(std::size_t i) const override { return i == 1; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    if (out[0].elements() == 0 || in[0].elements() == 0) return 0;
    const phased_deconvolution f = phases_of(in);
    const std::int64_t batch = f.whole().batch, some = images(f);
    std::int64_t work = 0;
    for (const std::int64_t n : {some, batch % some})
      if (n > 0) work = std::max(work, plan_for(f, n, threads)->scratch_floats());
    return static_cast<std::size_t>(made(f, some) + work) * sizeof(float);
  }
  void run(const launch& l) const override {
    auto* y = l.out[0].as<float>();
    if (l.out[0].elements() == 0) return;
    if (l.in[0].elements() == 0) {
      std::fill_n(y, l.out[0].elements(), 0.0F);
      return;
    }
    const phased_deconvolution f = phases_of(l.in);
    const sizes_of_deconvolution& s = f.whole();
    const std::int64_t some = images(f), filters = s.group * s.filters, taps = f.of_filter().taps(),
                       pixels = f.convolution().output_pixels();
    auto* const columns = reinterpret_cast<float*>(l.scratch.data());
    const float* x = l.in[0].as<const float>();
    for (std::int64_t image = 0; image < s.batch; image += some) {
      const std::int64_t n = std::min(some, s.batch - image);
      plan_for(f, n, l.pool->size())
          ->run(*l.pool, x, reinterpret_cast<const float*>(packed_.data()), columns, columns + made(f, some), {},
                nullptr);
      add_columns(*l.pool, n * filters, [&](std::int64_t filter) {
        kernels::column_problem p = f.of_filter();
        p.columns = columns + filter * taps * pixels;
        p.step = pixels;
        p.rows = p.in[0] * p.in[1];
        p.y = y + filter * s.result;
        return p;
      });
      x += n * s.group * s.channels * s.pixels();
      y += n * filters * s.result;
    }
  }

 private:
  phased_deconvolution phases_of(std::span<const tensor> in) const {
    return *phased_deconvolution::of(attributes_, in[0].lens, in[1].lens, near_weights_);
  }
  // Images whose phases are computed at a time.
  static std::int64_t images(const phased_deconvolution& f) {
    const std::int64_t each = f.phases() * f.convolution().output_pixels();
    return std::clamp<std::int64_t>(band_floats / std::max<std::int64_t>(1, each), 1, f.whole().batch);
  }
  static std::int64_t made(const phased_deconvolution& f, std::int64_t images) {
    return kernels::round_up(images * f.phases() * f.convolution().output_pixels(), 16);
  }
  std::shared_ptr<const conv_plan> plan_for(const phased_deconvolution& f, std::int64_t images,
                                            unsigned threads) const {
    conv_problem p = f.convolution();
    p.batch = images;
    return plans_.of(p, threads, method_, {}, {}, false);
  }

  op::deconvolution attributes_;
  bool near_weights_;
  kernels::conv_method method_;
  buffer packed_;
  conv_plans plans_;
};

// Whether phases take less work than columns, by estimates.
bool phases_take_less(const phased_deconvolution& f, const float* weights) {
  const isa_table& isa = *kiln_eigen_isa();
  const conv_problem& p = f.convolution();
  const sizes_of_deconvolution& s = f.whole();
  if (s.channels == 1 || p.empty() || s.pixels() == 0) return false;
  if (s.columns == s.channels && adds_channels(weights, s.group * s.channels * s.columns, s.channels)) return false;
  // Products in the time of two forks and of an element between the two steps: one that stays in L2 or does not. Bands
  // of columns are made and added by turns.
  constexpr double forks = 50e3, near_elements = 128 * 1024;
  const auto between = [](double elements) { return (elements < near_elements ? 10 : 40) * elements; };
  kernels::gemm_problem<float> band;
  band.m = s.columns, band.n = std::min(s.pixels(), band_floats / s.columns + 1), band.k = s.channels;
  const auto entries = static_cast<double>(s.batch * s.group), columns = static_cast<double>(s.pixels() * s.columns),
             made = static_cast<double>(p.out_channels * p.output_pixels());
  const double products = columns * static_cast<double>(s.channels) / (isa.gains_from_matrix_unit(band) ? 1.5 : 1),
               turns = columns < near_elements ? 1 : 1.25,
               bands = std::ceil(columns / static_cast<double>(band_floats));
  return isa.conv_cost(p, isa.choose_conv_method(p, false, false), false, false) +
             static_cast<double>(p.batch) * between(made) + forks <
         turns * entries * (products + between(columns) + forks * bands);
}

}  // namespace

std::unique_ptr<kernel> lower_deconvolution(const kernel_request& r) {
  const auto* const op = r.instruction.op.get_if<op::deconvolution>();
  if (!op || r.inputs[0].type != dtype::f32 || r.inputs[0].rank() > 5) return nullptr;
  constexpr std::int64_t most_stride = 4096;  // sums of a row's elements that many apart stay in L1
  for (const std::int64_t stride : op->stride)
    if (stride > most_stride) return nullptr;
  if (r.constants[1] && r.constant_layouts[1].is_standard() && r.inputs[1].is_constant()) {
    const auto phases = phased_deconvolution::of(*op, sizes(r.inputs[0]), to_ints(r.inputs[1].lens), r.near_constants);
    const auto chosen = [&] {
      const argument aligned(*r.constants[1]);
      return phases_take_less(*phases, aligned.as<float>().data() + r.constant_layouts[1].offset.value());
    };
    if (phases && r.decide(2, chosen) != 0) return std::make_unique<phased_deconvolution_kernel>(*op, *phases, r);
  }
  return std::make_unique<deconvolution_kernel>(*op, r);
}

}  // namespace kiln::eigen
