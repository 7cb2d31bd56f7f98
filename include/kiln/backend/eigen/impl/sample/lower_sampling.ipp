#include <algorithm>
#include <limits>

#include "kiln/backend/eigen/impl/conv/channels_last.hpp"
#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/op/nn/grid_sample.hpp"

// Images sampled at positions of a run: places and weights of the taps are found once for all channels.
namespace kiln::eigen {
namespace {

void sum_taps(const kernels::tap_problem<float>& p) { kiln_eigen_sampling()->sum_taps(p); }
void sum_taps(const kernels::tap_problem<double>& p) { kiln_eigen_sampling()->sum_taps_f64(p); }

template <class T> class grid_sample_kernel final : public kernel {
  static constexpr bool is_f32 = std::is_same_v<T, float>;

 public:
  explicit grid_sample_kernel(const op::grid_sample& op) : op_(op) {}
  std::string name() const override { return "grid_sample " + std::string(to_string(op_.mode)); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return std::max(threads * pixel_table::bytes, plane_table::bytes) +
           (is_f32 ? channels_last::bytes(in[0], out[0]) : 0);
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const problem p(op_, l);
    if (p.plane == 0) return std::fill_n(l.out[0].as<T>(), l.out[0].elements(), T(0)), void();
    // the last place of a longer one as f32 would be 2^31, which i32 does not have
    constexpr std::int64_t most_places = (std::int64_t{1} << 31) - 128;
    if (p.plane > most_places) raise(fault::of(errc::limit, "elements of a sampled plane", most_places, p.plane));
    if constexpr (is_f32) {
      channels_last layout(p.batch, p.channels, p.plane, p.batch, p.points, p.batch * p.points * p.taps);
      if (layout.copies()) return sum_pixels(l, p, layout);
    }
    sum_planes(l, p);
  }

 private:
  // Places and weights of so many taps, in scratch.
  template <std::int64_t Most> struct table {
    static constexpr std::int64_t most = Most;
    static constexpr std::size_t bytes = (sizeof(T) + sizeof(std::int32_t)) * Most;
    T* weights;
    std::int32_t* at;
    explicit table(std::byte* scratch)
        : weights(reinterpret_cast<T*>(scratch)), at(reinterpret_cast<std::int32_t*>(weights + Most)) {}
  };
  // Those that a task sums for all channels of a pixel, and those that all tasks read for a plane each: larger tables
  // would not stay in the caches.
  using pixel_table = table<4096>;
  using plane_table = table<65536>;

  struct problem {
    std::int64_t batch, channels, plane, points, taps = 1;
    const tensor& grid;
    kernels::grid_problem images;

    problem(const op::grid_sample& op, const launch& l)
        : batch(l.in[0].lens[0]),
          channels(l.in[0].lens[1]),
          plane(l.in[0].elements() / (batch * channels)),
          points(l.out[0].elements() / (batch * channels)),
          grid(l.in[1]) {
      const ints& lens = l.in[0].lens;
      images.op = op;
      images.axes = lens.size() - 2;
      for (std::size_t d = 2; d < lens.size(); ++d) {
        images.lens[d + 1 - images.axes] = lens[d];
        taps *= op.taps();
      }
    }
    // Points of a table in whole vectors: at most so many taps, as many for each of some tasks.
    std::int64_t points_of(std::int64_t most, std::int64_t wanted) const {
      const std::int64_t fair = (points + wanted - 1) / wanted;
      return std::min(most / taps, (std::max<std::int64_t>(fair, 16) + 15) / 16 * 16);
    }
    // Finds taps of points of image n, those of a table that lie `step` apart.
    template <class Table>
    void find(const Table& to, std::int64_t offset, std::int64_t step, std::int64_t n, std::int64_t first,
              std::int64_t count) const {
      kernels::grid_problem p = images;
      p.positions = grid.as<const T>() + (n * points + first) * static_cast<std::int64_t>(p.axes);
      p.count = count, p.step = step;
      p.at = to.at + offset, p.weights = to.weights + offset;
      kiln_eigen_sampling()->find_taps(p, grid.type);
    }
    // Sums of points of such a table.
    template <class Table> kernels::tap_problem<T> sums(const Table& of, std::int64_t step, std::int64_t count) const {
      kernels::tap_problem<T> p;
      p.count = count, p.taps = taps, p.tap_step = step;
      p.at = of.at, p.weights = of.weights;
      return p;
    }
  };

  // All channels of a point together: each task finds the taps of its points.
  void sum_pixels(const launch& l, const problem& p, channels_last& layout) const requires is_f32 {
    std::byte* const copies = l.scratch.data() + std::max(l.pool->size() * pixel_table::bytes, plane_table::bytes);
    const float* const from =
        layout.begin(*l.pool, l.in[0].as<const float>(), l.out[0].as<float>(), reinterpret_cast<float*>(copies));
    const std::int64_t tasks = std::max<std::int64_t>(1, 4 * l.pool->size() / p.batch),
                       each = p.points_of(pixel_table::most, tasks), blocks = (p.points + each - 1) / each;
    l.pool->parallel_for(p.batch * blocks, [&](std::int64_t task, unsigned worker) {
      const std::int64_t n = task / blocks, first = task % blocks * each, count = std::min(each, p.points - first);
      const pixel_table own(l.scratch.data() + worker * pixel_table::bytes);
      p.find(own, 0, each, n, first, count);
      auto sums = p.sums(own, each, count);
      layout.place(sums, from, n, n, first);
      sum_taps(sums);
    });
    layout.end(*l.pool);
  }
  // Plane after plane, which stays in a cache: the taps of as many points as possible are found before, of several
  // images where these are small.
  void sum_planes(const launch& l, const problem& p) const {
    constexpr std::int64_t grain = 512;
    const auto threads = static_cast<std::int64_t>(l.pool->size());
    const plane_table found(l.scratch.data());
    const std::int64_t room = plane_table::most / p.taps, each = std::min(room, p.points),
                       most_images = std::clamp<std::int64_t>(room / p.points, 1, p.batch),
                       step = (most_images * each + 15) / 16 * 16;
    for (std::int64_t n = 0; n < p.batch; n += most_images)
      for (std::int64_t first = 0; first < p.points; first += each) {
        // several images have all of their points in the table, one after the other as in the grid
        const std::int64_t images = std::min(most_images, p.batch - n), count = std::min(each, p.points - first),
                           all = images * count, planes = images * p.channels;
        l.pool->parallel_for((all + grain - 1) / grain, [&](std::int64_t task, unsigned) {
          const std::int64_t i = task * grain;
          p.find(found, i, step, n, first + i, std::min(grain, all - i));
        });
        // a task sums a part of a plane, or some small planes
        const std::int64_t parts = std::max<std::int64_t>(1, 2 * threads / planes),
                           part = std::max(grain, (count / parts + 15) / 16 * 16), of_plane = (count + part - 1) / part,
                           some = std::max<std::int64_t>(1, grain / count);
        l.pool->parallel_for((planes + some - 1) / some * of_plane, [&](std::int64_t task, unsigned) {
          const std::int64_t i = task % of_plane * part, from = task / of_plane * some;
          for (std::int64_t k = from; k < std::min(planes, from + some); ++k) {
            const std::int64_t c = n * p.channels + k, at = k / p.channels * count + i;
            auto sums = p.sums(found, step, std::min(part, count - i));
            sums.at += at, sums.weights += at;
            sums.x = l.in[0].as<const T>() + c * p.plane, sums.x_plane = p.plane;
            sums.y = l.out[0].as<T>() + c * p.points + first + i, sums.y_plane = p.points;
            sum_taps(sums);
          }
        });
      }
  }

  op::grid_sample op_;
};

}  // namespace

std::unique_ptr<kernel> lower_grid_sample(const kernel_request& r) {
  const auto* op = r.instruction.op.get_if<op::grid_sample>();
  if (!op || !fits_in_i32(r.inputs[0])) return nullptr;
  if (r.inputs[0].type == dtype::f32) return std::make_unique<grid_sample_kernel<float>>(*op);
  if (r.inputs[0].type == dtype::f64) return std::make_unique<grid_sample_kernel<double>>(*op);
  return nullptr;
}

}  // namespace kiln::eigen
