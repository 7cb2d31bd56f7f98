#include <algorithm>

#include "kiln/backend/eigen/impl/conv/channels_last.hpp"
#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/op/nn/roi_align.hpp"

namespace kiln::eigen {
namespace {

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
    kernels::tap_problem<float> p;
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
        kernels::tap_problem<float> part = p;
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
        part.taps = part.result_step = taps;
        part.greatest = p.greatest && taps > 0;  // a bin of no samples is 0
        kiln_eigen_sampling()->sum_taps(part);
      }
    }
    void by_parts(kernels::tap_problem<float> part, const axis_bin& down, const axis_bin& right, double share,
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

std::unique_ptr<kernel> lower_roi_align(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::roi_align>();
  if (!op || r.inputs[0].type != dtype::f32 || !fits_in_i32(r.inputs[0])) return nullptr;
  for (const std::size_t d : {2U, 3U})
    if (!r.inputs[0].lens[d].is_constant() || r.inputs[0].lens[d] == dimension(0)) return nullptr;
  return std::make_unique<roi_align_kernel>(*op);
}

}  // namespace kiln::eigen
