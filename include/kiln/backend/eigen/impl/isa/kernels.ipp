#include "kiln/backend/eigen/expanded_depthwise.hpp"
#include "kiln/backend/eigen/impl/isa/gemm_epilogues.hpp"
#include "kiln/backend/eigen/impl/isa/tiles.hpp"
#include "kiln/backend/eigen/isa_layout.hpp"
#include "kiln/kernel/attention/attention.hpp"
#include "kiln/kernel/conv/column_sums.hpp"
#include "kiln/kernel/conv/convolution.hpp"
#include "kiln/kernel/conv/expanded_depthwise.hpp"
#include "kiln/kernel/norm/lrn.hpp"
#include "kiln/kernel/pointwise/block_moves.hpp"
#include "kiln/kernel/pool/image_mean.hpp"
#include "kiln/kernel/pool/nhwc.hpp"
#include "kiln/kernel/pool/pooling.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

// As many as kiln_eigen.cmake generates.
constexpr std::size_t units = 4;
static_assert(pointwise_ops::size + reduce_ops::size <= units * tiles_in_unit,
              "pointwise and reduction ops come first in the registry; raise the number of tile units in CMake");

// What a unit's function gives for op number `op`; none for ops past the last unit.
template <class Of> auto in_unit(std::size_t op, Of of) -> decltype(of.template operator()<0>(op)) {
  decltype(of.template operator()<0>(op)) found = nullptr;
  [&]<std::size_t... U>(std::index_sequence<U...>) {
    ((op / tiles_in_unit == U ? void(found = of.template operator()<U>(op % tiles_in_unit)) : void()), ...);
  }
  (std::make_index_sequence<units>{});
  return found;
}

tile_function tile(std::size_t op) {
  return in_unit(op, []<std::size_t U>(std::size_t k) { return tile_unit<U>::tile(k); });
}
fold_function fold(std::size_t op) {
  return in_unit(op, []<std::size_t U>(std::size_t k) { return tile_unit<U>::fold(k); });
}
const pointwise_steps* block_steps(std::size_t op) {
  const auto* steps = in_unit(op, []<std::size_t U>(std::size_t k) { return tile_unit<U>::block_steps(k); });
  return steps && steps->of[0][0] ? steps : nullptr;
}
const fold_steps* block_folds(std::size_t op) {
  const auto* steps = in_unit(op, []<std::size_t U>(std::size_t k) { return tile_unit<U>::block_folds(k); });
  return steps && steps->of[0] ? steps : nullptr;
}
const block_machine* blocks() {
  static const block_machine machine = [] {
    block_machine m = make_block_machine();
    m.find_loop = find_row_loop;
    return m;
  }();
  return &machine;
}

conv_machine this_machine() {
  // AMD's cores up to Zen 4 do at most 16 products a cycle, half of what Intel's servers do, and their third-level
  // cache gives two of them 2.5 times the bytes a second: 110 products and 150 bytes a ns were measured, on Intel's
  // 190 and 60. The quotients' ratio would be 0.23; 0.4 gave the shorter times of whole networks, whose weights come
  // from memory.
#if KILN_HAS_MXCSR
  static const bool amd = __builtin_cpu_is("amdfam17h") || __builtin_cpu_is("amdfam19h");
  const double byte_cost = amd ? 0.4 : 1;
#else
  constexpr double byte_cost = 1;
#endif
  return {byte_cost, matrix_unit::available()};
}

void run_gemm(thread_pool& pool, const gemm_problem<float>& p, float* scratch, const gemm_epilogue& epilogue) {
  with_epilogue(epilogue, [&](auto&& apply) { gemm(pool, p, scratch, apply); });
}

void run_gemm_unpacked(thread_pool& pool, const gemm_problem<float>& p, float* scratch, const gemm_epilogue& epilogue) {
  with_epilogue(epilogue, [&](auto&& apply) { gemm_unpacked(pool, p, scratch, apply); });
}

class planned final : public conv_plan {
 public:
  planned(const conv_problem& p, unsigned workers, conv_method method, const image_layout& in, const image_layout& out,
          bool has_prologue)
      : run_(p, workers, method, in, out, has_prologue), channels_(p.out_channels), last_(out.nhwc) {}
  std::int64_t scratch_floats() const override { return run_.scratch_size(); }
  void run(thread_pool& pool, const float* x, const float* w, float* y, float* scratch, const conv_epilogue& epilogue,
           const channel_prologue<float>* prologue) const override {
    if (!epilogue.call && !epilogue.affine) return run_.run(pool, x, w, y, scratch, no_conv_epilogue{}, prologue);
    if (!epilogue.call)
      return run_.run(pool, x, w, y, scratch, affine_conv_epilogue<float>{*epilogue.affine, channels_, last_},
                      prologue);
    run_.run(
        pool, x, w, y, scratch,
        [&](std::int64_t image, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0, std::int64_t pixels,
            float* c, std::ptrdiff_t c_row) {
          if (epilogue.affine)
            affine_conv_epilogue<float>{*epilogue.affine, channels_, last_}(image, channel0, channels, pixel0, pixels,
                                                                            c, c_row);
          epilogue.call(epilogue.self, image, channel0, channels, pixel0, pixels, c, c_row);
        },
        prologue);
  }

 private:
  convolution<float> run_;
  std::int64_t channels_;
  bool last_;
};

conv_plan* plan_conv(const conv_problem& p, unsigned workers, conv_method method, const image_layout& in,
                     const image_layout& out, bool has_prologue) {
  return new planned(p, workers, method, in, out, has_prologue);
}

// The epilogue of a convolution in NHWC, whatever it is: what runs over rows of some width gains nothing from a loop of
// its own for each form.
struct pixels_epilogue {
  const conv_epilogue& of;

  void operator()(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
                  std::ptrdiff_t c_row) const {
    if (of.affine) (*of.affine)(row0, rows, col0, cols, c, c_row);
    if (of.call) of.call(of.self, 0, col0, cols, row0, rows, c, c_row);
  }
  bool in_registers(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                    tile_epilogue<float>& to) const {
    return of.affine && !of.call && of.affine->in_registers(row0, rows, col0, cols, to);
  }
};

expanded_depthwise_convolution<float> planned_strips(const expanded_depthwise& p, unsigned workers) {
  return {p.expand, p.depthwise, workers};
}

void run_expanded_depthwise(thread_pool& pool, const expanded_depthwise& p, float* scratch) {
  planned_strips(p, pool.size())
      .run(pool, p.x, p.x_step, p.expand_weights, p.depthwise_weights, p.y, p.y_step, scratch,
           pixels_epilogue{p.between}, pixels_epilogue{p.result});
}

void convert_images(thread_pool& pool, std::int64_t batch, std::int64_t channels, std::int64_t pixels,
                    const float* from, const image_layout& from_layout, float* to, const image_layout& to_layout) {
  const image_conversion<float> images(batch, channels, pixels);
  if (to_layout.nhwc)
    images.to_nhwc(pool, from, to, to_layout.step);
  else
    images.to_nchw(pool, from, from_layout.step, to, to_layout.nchw ? to_layout.nchw->image : 0,
                   [](std::int64_t, std::int64_t, std::int64_t) {});
}

template <class To, class From, class Load> void convert_tiles(const From* in, To* out, std::int64_t n, Load each) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = each(in[i]);
}

constexpr isa_table table{
    .layout = isa_layout(),
    .vector_bytes = native_bytes,
    .tile = tile,
    .fold = fold,
    .block_steps = block_steps,
    .block_folds = block_folds,
    .blocks = blocks,
    .halves_to_floats =
        [](const std::uint16_t* in, float* out, std::int64_t n) {
          convert_tiles(in, out, n, [](std::uint16_t x) { return half_value(x); });
        },
    .floats_to_halves = [](const float* in, std::uint16_t* out,
                           std::int64_t n) { convert_tiles(in, out, n, [](float x) { return half_bits(x); }); },
    .forbid_matrix_unit = matrix_unit::forbid,
    .matrix_unit_available = matrix_unit::available,
    .gains_from_matrix_unit = gains_from_matrix_unit<float>,
    .packed_b_floats = packed_b_size<float>,
    .pack_b = pack_b<float>,
    .gemm_scratch_floats = gemm_scratch_size<float>,
    .gemm = run_gemm,
    .gemm_unpacked_scratch_floats = gemm_unpacked_scratch_size<float>,
    .gemm_unpacked = run_gemm_unpacked,
    .gains_from_nhwc = [](const conv_problem& p) { return gains_from_nhwc<float>(p, this_machine()); },
    .choose_conv_method = [](const conv_problem& p, bool in_nhwc,
                             bool out_nhwc) { return choose_conv_method<float>(p, in_nhwc, out_nhwc, this_machine()); },
    .conv_cost = [](const conv_problem& p, conv_method method, bool in_nhwc,
                    bool out_nhwc) { return conv_cost<float>(p, in_nhwc, out_nhwc, this_machine()).of(method); },
    .conv_weight_floats = conv_weights_size<float>,
    .pack_conv_weights = pack_conv_weights<float>,
    .plan_conv = plan_conv,
    .add_columns = [](const column_problem& p) { column_sums(p).run(); },
    .convert_images = convert_images,
    .attention_scratch_floats = attention_scratch_size,
    .attention = attention,
    .pool = pool_nchw,
    .pool_nhwc = pool_nhwc,
    .image_mean_scratch_floats =
        [](std::int64_t batch, std::int64_t pixels, std::int64_t channels) {
          return image_mean<float>(batch, pixels, channels).scratch_size();
        },
    .image_mean = [](thread_pool& pool, std::int64_t batch, std::int64_t pixels, std::int64_t channels, const float* x,
                     std::ptrdiff_t step, float* y,
                     float* scratch) { image_mean<float>(batch, pixels, channels).run(pool, x, step, y, scratch); },
    .lrn = local_response_norm,
};

constexpr expanded_depthwise_table strips{
    .scratch_floats = [](const expanded_depthwise& p,
                         unsigned workers) { return planned_strips(p, workers).scratch_size(); },
    .run = run_expanded_depthwise,
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const isa_table* kiln_eigen_isa() { return &table; }

extern "C" [[gnu::visibility("default")]] const expanded_depthwise_table* kiln_eigen_expanded_depthwise() {
  return &strips;
}

}  // namespace kiln::eigen
