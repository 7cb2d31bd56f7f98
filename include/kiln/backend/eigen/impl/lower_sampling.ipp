#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/op/nn/grid_sample.hpp"
#include "kiln/op/nn/roi_align.hpp"
#include "kiln/runtime/thread_pool.hpp"

// Ops that sample images at positions of a run: places and weights of the taps are found once for all channels.
namespace kiln::eigen {
namespace {

bool fits_in_i32(const shape& s) {
  for (const dimension d : s.lens)
    if (d.is_constant() && d.value() > (1 << 24)) return false;
  return true;
}

// x[n, c, pixels] and y[n', c, results] with their channels side by side, where that pays: copies in scratch. Reading
// single elements of few channels, or of a few places in large images, takes less than a copy.
class channels_last {
 public:
  // `reads` are taps of all results of one channel.
  channels_last(std::int64_t images, std::int64_t channels, std::int64_t pixels, std::int64_t made_images,
                std::int64_t results, std::int64_t reads)
      : images_(images),
        channels_(channels),
        pixels_(pixels),
        made_images_(made_images),
        results_(results),
        copies_(channels >= 3 && 4 * reads >= images * pixels + made_images * results) {}

  static std::size_t bytes(const tensor& x, const tensor& y) {
    return 4 * static_cast<std::size_t>(x.elements() + y.elements() + 32);
  }
  // The operand and where results go, of image 0.
  const float* begin(thread_pool& pool, const float* x, float* y, float* scratch) {
    made_ = y, written_ = y;
    if (!copies_) return x;
    written_ = scratch + (images_ * channels_ * pixels_ + 15) / 16 * 16;
    kiln_eigen_isa()->convert_images(pool, images_, channels_, pixels_, x, {}, scratch, {true, channels_});
    return scratch;
  }
  void end(thread_pool& pool) const {
    if (copies_)
      kiln_eigen_isa()->convert_images(pool, made_images_, channels_, results_, written_, {true, channels_}, made_, {});
  }
  // Result `first` of an image, and the steps of a problem.
  void place(kernels::tap_problem& p, const float* x, std::int64_t image, std::int64_t made, std::int64_t first) const {
    p.channels = channels_;
    p.x = x + image * channels_ * pixels_;
    p.y = written_ + made * channels_ * results_ + first * (copies_ ? channels_ : 1);
    p.x_plane = copies_ ? 0 : pixels_, p.y_plane = results_;
  }

 private:
  std::int64_t images_, channels_, pixels_, made_images_, results_;
  bool copies_;
  float *made_ = nullptr, *written_ = nullptr;
};

template <class T> class grid_sample_kernel final : public kernel {
  static constexpr bool is_f32 = std::is_same_v<T, float>;

 public:
  explicit grid_sample_kernel(const op::grid_sample& op) : op_(op) {}
  std::string name() const override { return "grid_sample " + std::string(to_string(op_.mode)); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return threads * bytes_of_worker() + (is_f32 ? channels_last::bytes(in[0], out[0]) : 0);
  }

  void run(const launch& l) const override {
    const tensor &x = l.in[0], &grid = l.in[1], &y = l.out[0];
    if (y.elements() == 0) return;
    const std::size_t axes = x.rank() - 2;
    const std::int64_t batch = x.lens[0], channels = x.lens[1], points = y.elements() / (batch * channels),
                       plane = x.elements() / (batch * channels);
    if (plane == 0) return std::fill_n(y.as<T>(), y.elements(), T(0)), void();
    if (plane > std::numeric_limits<std::int32_t>::max())
      raise(fault::of(errc::limit, "elements of a sampled plane", std::numeric_limits<std::int32_t>::max(), plane));
    const std::int64_t taps = op_.mode == op::sampling_mode::nearest  ? 1
                              : op_.mode == op::sampling_mode::linear ? 2
                                                                      : 4;
    std::int64_t all = 1;
    for (std::size_t d = 0; d < axes; ++d) all *= taps;
    // few points at once where they are few in all: every thread has some
    const std::int64_t most = most_taps / all, fair = batch * points / (4 * l.pool->size()),
                       each = std::clamp<std::int64_t>(fair, 16, most), blocks = (points + each - 1) / each;
    std::byte* const workers = l.scratch.data();
    // Finds the taps of a task's points, then calls sum(image, first point, points, places, weights).
    const auto for_points = [&](auto&& sum) {
      l.pool->parallel_for(batch * blocks, [&](std::int64_t task, unsigned worker) {
        const std::int64_t n = task / blocks, first = task % blocks * each, count = std::min(each, points - first);
        std::byte* const own = workers + worker * bytes_of_worker();
        auto* const weights = reinterpret_cast<T*>(own);
        auto* const at = reinterpret_cast<std::int32_t*>(weights + most_taps);
        find(grid.as<const T>() + (n * points + first) * static_cast<std::int64_t>(axes), x.lens, count, at, weights);
        sum(n, first, count, at, weights);
      });
    };
    if constexpr (is_f32) {
      channels_last layout(batch, channels, plane, batch, points, batch * points * all);
      const float* const from = layout.begin(*l.pool, x.as<const float>(), y.as<float>(),
                                             reinterpret_cast<float*>(workers + l.pool->size() * bytes_of_worker()));
      for_points([&](std::int64_t n, std::int64_t first, std::int64_t count, const std::int32_t* at, const T* weights) {
        kernels::tap_problem p;
        p.count = count, p.taps = all, p.at = at, p.weights = weights;
        layout.place(p, from, n, n, first);
        kiln_eigen_sampling()->sum_taps(p);
      });
      layout.end(*l.pool);
    } else {
      for_points([&](std::int64_t n, std::int64_t first, std::int64_t count, const std::int32_t* at, const T* weights) {
        for (std::int64_t c = n * channels; c < (n + 1) * channels; ++c)
          sum_plane(x.as<const T>() + c * plane, y.as<T>() + c * points + first, count, all, at, weights);
      });
    }
  }

 private:
  static constexpr std::int64_t most_taps = 4096;
  static constexpr std::size_t bytes_of_worker() { return (sizeof(T) + sizeof(std::int32_t)) * most_taps; }

  static void sum_plane(const T* x, T* y, std::int64_t count, std::int64_t taps, const std::int32_t* at,
                        const T* weights) {
    if (taps == 4) {
      for (std::int64_t i = 0; i < count; ++i, at += 4, weights += 4)
        y[i] = weights[0] * x[at[0]] + weights[1] * x[at[1]] + weights[2] * x[at[2]] + weights[3] * x[at[3]];
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      T sum = 0;
      for (std::int64_t k = 0; k < taps; ++k) sum += *weights++ * x[*at++];
      y[i] = sum;
    }
  }

  void find(const T* positions, const ints& lens, std::int64_t count, std::int32_t* at, T* weights) const {
    const std::size_t axes = lens.size() - 2;
    const std::int64_t high = axes > 1 ? lens[axes] : 1, wide = lens[axes + 1];
    for (std::int64_t i = 0; i < count; ++i, positions += axes) {
      op::grid_sample::axis_taps<T> taps[3] = {};
      for (std::size_t d = 0; d < axes; ++d)
        taps[3 - axes + d] = op_.taps_at(positions[op_.coordinate(d, axes)], lens[d + 2]);
      for (std::int64_t a = 0; a < taps[0].count; ++a)
        for (std::int64_t b = 0; b < taps[1].count; ++b)
          for (std::int64_t c = 0; c < taps[2].count; ++c) {
            *at++ = static_cast<std::int32_t>((taps[0].at[a] * high + taps[1].at[b]) * wide + taps[2].at[c]);
            *weights++ = taps[0].weight[a] * taps[1].weight[b] * taps[2].weight[c];
          }
    }
  }
  op::grid_sample op_;
};

// One region after the other. A mean's samples that fall between the same pixels are one tap.
class roi_align_kernel final : public kernel {
 public:
  explicit roi_align_kernel(const op::roi_align& op) : op_(op) {}
  std::string name() const override {
    return op_.samples < 0 ? "roi_align whole pixels" : op_.greatest ? "roi_align max" : "roi_align mean";
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return threads * layout_of(in[0]).bytes + channels_last::bytes(in[0], out[0]);
  }

  void run(const launch& l) const override {
    const tensor &x = l.in[0], &rois = l.in[1], &batches = l.in[2], &y = l.out[0];
    if (y.elements() == 0) return;
    const std::int64_t regions = rois.lens[0], channels = x.lens[1], h = x.lens[2], w = x.lens[3];
    const std::int64_t parts = std::clamp<std::int64_t>(4 * l.pool->size() / regions, 1, op_.height),
                       rows = (op_.height + parts - 1) / parts;
    const worker_layout own = layout_of(x);
    // a bin has at least so many taps
    const std::int64_t bins = op_.height * op_.width,
                       reads = regions * bins * 4 * std::max<std::int64_t>(1, op_.samples);
    channels_last layout(x.lens[0], channels, h * w, regions, bins, reads);
    const float* const from = layout.begin(*l.pool, x.as<const float>(), y.as<float>(),
                                           reinterpret_cast<float*>(l.scratch.data() + l.pool->size() * own.bytes));
    l.pool->parallel_for(regions * parts, [&](std::int64_t task, unsigned worker) {
      const std::int64_t n = task / parts, first = task % parts * rows, last = std::min(op_.height, first + rows);
      std::int64_t image = 0;
      decode(batches.type, batches.data + static_cast<std::size_t>(n) * size_of(batches.type), &image, 1);
      if (image < -x.lens[0] || image >= x.lens[0])
        raise(fault::of(errc::invalid_argument, "an index lies within the extent", x.lens[0], image));
      if (image < 0) image += x.lens[0];
      region r(op_, rois.as<const float>() + n * 4, h, w, own, l.scratch.data() + worker * own.bytes);
      for (std::int64_t i = first; i < last; ++i) {
        layout.place(r.p, from, image, n, i * op_.width);
        r.row(i);
      }
    });
    layout.end(*l.pool);
  }

 private:
  static constexpr std::int64_t most_taps = 8192;

  struct tap {
    std::int64_t at;
    double weight;
  };
  // A worker's scratch: places and weights of taps, then those of each bin of a row and of the row along their axes.
  struct worker_layout {
    std::size_t bin_taps, bytes;
  };
  worker_layout layout_of(const tensor& x) const {
    const std::int64_t extent = std::max(x.lens[2], x.lens[3]),
                       samples = op_.samples > 0 ? op_.samples : 4 * extent + 4;
    const auto taps = static_cast<std::size_t>(op_.samples < 0 ? extent
                                               : op_.greatest  ? 2 * samples
                                                               : std::min(2 * samples, extent));
    const std::size_t bins = static_cast<std::size_t>(op_.width + 1) * taps * sizeof(tap);
    return {taps, (2 * 4 * static_cast<std::size_t>(most_taps) + bins + 63) / 64 * 64};
  }

  // Weighted pixels of a bin along one axis.
  struct axis_bin {
    tap* taps;
    std::int64_t count = 0;
    bool any_outside = false;
  };

  struct region {
    const op::roi_align& op;
    op::roi_align::axis rows, columns;
    kernels::tap_problem p;
    std::int32_t* at;
    float* weights;
    tap* bins;
    std::size_t bin_taps;

    region(const op::roi_align& o, const float* corners, std::int64_t h, std::int64_t w, const worker_layout& own,
           std::byte* scratch)
        : op(o),
          at(reinterpret_cast<std::int32_t*>(scratch)),
          weights(reinterpret_cast<float*>(at + most_taps)),
          bins(reinterpret_cast<tap*>(weights + most_taps)),
          bin_taps(own.bin_taps) {
      const auto [tall, wide] = op.axes_of(corners, h, w);
      rows = tall, columns = wide;
      p.at = at, p.weights = weights;
      p.greatest = op.greatest;
    }
    axis_bin bin(const op::roi_align::axis& a, std::int64_t k, std::int64_t slot) const {
      axis_bin out{bins + static_cast<std::size_t>(slot) * bin_taps};
      if (a.samples < 0) {
        const auto [first, last] = op::roi_align::pixels<float>(a, k);
        for (std::int64_t at = first; at < last; ++at) out.taps[out.count++] = {at, 1};
        return out;
      }
      for (std::int64_t s = 0; s < a.samples; ++s) {
        const auto b = op::roi_align::neighbors(a, k, s);
        if (!b.inside) {
          out.any_outside = true;
          continue;
        }
        add(out, b.low, 1 - b.above);
        add(out, b.high, b.above);
      }
      return out;
    }
    // Means add up the weights of a pixel; the greatest product is of each alone.
    void add(axis_bin& to, std::int64_t pixel, double weight) const {
      for (std::int64_t k = to.count; !op.greatest && k-- > 0;)
        if (to.taps[k].at == pixel) return to.taps[k].weight += weight, void();
      to.taps[to.count++] = {pixel, weight};
    }
    // A row of bins. Those with as many taps go together; taps beyond the scratch are added by parts.
    void row(std::int64_t i) {
      const axis_bin down = bin(rows, i, op.width);
      const std::int64_t samples = rows.samples * columns.samples;
      const double share = op.greatest || samples == 0 ? 1 : 1 / static_cast<double>(samples);
      for (std::int64_t j = 0; j < op.width;) {
        axis_bin next = bin(columns, j, j);
        const std::int64_t taps = count(down, next), most = taps == 0 ? op.width : most_taps / taps;
        kernels::tap_problem part = p;
        part.y += j * (p.x_plane == 0 ? p.channels : 1);
        if (taps > most_taps) {
          by_parts(part, down, next, share, taps);
          ++j;
          continue;
        }
        while (part.count < most) {
          place(down, next, share, at + part.count * taps, weights + part.count * taps, 0, taps);
          ++part.count, ++j;
          if (j == op.width) break;
          next = bin(columns, j, j);
          if (count(down, next) != taps) break;
        }
        part.taps = taps;
        part.greatest = p.greatest && taps > 0;  // a bin of no samples is 0
        kiln_eigen_sampling()->sum_taps(part);
      }
    }
    void by_parts(kernels::tap_problem part, const axis_bin& down, const axis_bin& right, double share,
                  std::int64_t taps) const {
      part.count = 1;
      for (std::int64_t from = 0; from < taps; from += most_taps) {
        part.taps = std::min(most_taps, taps - from);
        place(down, right, share, at, weights, from, from + part.taps);
        part.adds = from > 0;
        kiln_eigen_sampling()->sum_taps(part);
      }
    }
    // A sample outside is a zero among the products.
    std::int64_t count(const axis_bin& down, const axis_bin& right) const {
      const bool zero = op.greatest && (down.any_outside || right.any_outside) && rows.samples * columns.samples > 0;
      return down.count * right.count + zero;
    }
    // Taps [first, last) of a bin.
    void place(const axis_bin& down, const axis_bin& right, double share, std::int32_t* to, float* by,
               std::int64_t first, std::int64_t last) const {
      const std::int64_t products = down.count * right.count;
      std::int64_t i = products == 0 ? 0 : first / right.count, j = products == 0 ? 0 : first % right.count;
      for (std::int64_t k = first; k < last; ++k, ++to, ++by) {
        const tap a = k < products ? down.taps[i] : tap{0, 0}, b = k < products ? right.taps[j] : tap{0, 0};
        *to = static_cast<std::int32_t>(a.at * columns.extent + b.at);
        *by = static_cast<float>(a.weight * b.weight * share);
        if (++j == right.count) j = 0, ++i;
      }
    }
  };

  op::roi_align op_;
};

}  // namespace

std::unique_ptr<kernel> lower_grid_sample(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::grid_sample>();
  if (!op || !fits_in_i32(r.inputs[0])) return nullptr;
  if (r.inputs[0].type == dtype::f32) return std::make_unique<grid_sample_kernel<float>>(*op);
  if (r.inputs[0].type == dtype::f64) return std::make_unique<grid_sample_kernel<double>>(*op);
  return nullptr;
}

std::unique_ptr<kernel> lower_roi_align(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::roi_align>();
  if (!op || r.inputs[0].type != dtype::f32 || !fits_in_i32(r.inputs[0])) return nullptr;
  for (const std::size_t d : {2U, 3U})
    if (!r.inputs[0].lens[d].is_constant() || r.inputs[0].lens[d] == dimension(0)) return nullptr;
  return std::make_unique<roi_align_kernel>(*op);
}

}  // namespace kiln::eigen
