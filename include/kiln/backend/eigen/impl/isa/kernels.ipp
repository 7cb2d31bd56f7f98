#include "kiln/backend/eigen/impl/isa/tiles.hpp"
#include "kiln/backend/eigen/isa_layout.hpp"
#include "kiln/kernel/attention.hpp"
#include "kiln/kernel/block_moves.hpp"
#include "kiln/kernel/convolution.hpp"
#include "kiln/kernel/lrn.hpp"
#include "kiln/kernel/pooling.hpp"
#include "kiln/kernel/pooling_images.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

constexpr std::size_t units = 4;
static_assert(pointwise_ops::size + reduce_ops::size <= units * tiles_in_unit,
              "pointwise and reduction ops come first in the registry; add tiles_<n>.ipp and count it here");

tile_function tile(std::size_t op) {
  constexpr tile_function (*of[units])(std::size_t) = {unit_tile<0>, unit_tile<1>, unit_tile<2>, unit_tile<3>};
  return op < units * tiles_in_unit ? of[op / tiles_in_unit](op % tiles_in_unit) : nullptr;
}
fold_function fold(std::size_t op) {
  constexpr fold_function (*of[units])(std::size_t) = {unit_fold<0>, unit_fold<1>, unit_fold<2>, unit_fold<3>};
  return op < units * tiles_in_unit ? of[op / tiles_in_unit](op % tiles_in_unit) : nullptr;
}

const pointwise_steps* block_steps(std::size_t op) {
  constexpr const pointwise_steps* (*of[units])(std::size_t) = {unit_block_steps<0>, unit_block_steps<1>,
                                                                unit_block_steps<2>, unit_block_steps<3>};
  const auto* steps = op < units * tiles_in_unit ? of[op / tiles_in_unit](op % tiles_in_unit) : nullptr;
  return steps && steps->of[0][0] ? steps : nullptr;
}
const fold_steps* block_folds(std::size_t op) {
  constexpr const fold_steps* (*of[units])(std::size_t) = {unit_block_folds<0>, unit_block_folds<1>,
                                                           unit_block_folds<2>, unit_block_folds<3>};
  const auto* steps = op < units * tiles_in_unit ? of[op / tiles_in_unit](op % tiles_in_unit) : nullptr;
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

template <class Run>
void with_tail(const gemm_tail& tail, Run&& run) {
  if (tail.affine && !tail.call)
    run(*tail.affine);
  else if (tail.call)
    run([&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
            std::ptrdiff_t c_row) {
      if (tail.affine) (*tail.affine)(row0, rows, col0, cols, c, c_row);
      tail.call(tail.self, row0, rows, col0, cols, c, c_row);
    });
  else
    run(no_epilogue{});
}

void run_gemm(thread_pool& pool, const gemm_problem<float>& p, float* scratch, const gemm_tail& tail) {
  with_tail(tail, [&](auto&& epilogue) { gemm(pool, p, scratch, epilogue); });
}

void run_gemm_unpacked(thread_pool& pool, const gemm_problem<float>& p, float* scratch, const gemm_tail& tail) {
  with_tail(tail, [&](auto&& epilogue) { gemm_unpacked(pool, p, scratch, epilogue); });
}

class planned final : public conv_plan {
 public:
  planned(const conv_problem& p, unsigned workers, conv_method method, const image_layout& in, const image_layout& out,
          bool has_prologue)
      : run_(p, workers, method, in, out, has_prologue), channels_(p.out_channels), last_(out.channels_last) {}
  std::int64_t scratch_floats() const override { return run_.scratch_size(); }
  void run(thread_pool& pool, const float* x, const float* w, float* y, float* scratch, const conv_tail& tail,
           const channel_prologue<float>* prologue) const override {
    if (!tail.call && !tail.affine) return run_.run(pool, x, w, y, scratch, no_conv_epilogue{}, prologue);
    if (!tail.call)
      return run_.run(pool, x, w, y, scratch, affine_images<float>{*tail.affine, channels_, last_}, prologue);
    run_.run(
        pool, x, w, y, scratch,
        [&](std::int64_t image, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0, std::int64_t pixels,
            float* c, std::ptrdiff_t c_row) {
          if (tail.affine)
            affine_images<float>{*tail.affine, channels_, last_}(image, channel0, channels, pixel0, pixels, c, c_row);
          tail.call(tail.self, image, channel0, channels, pixel0, pixels, c, c_row);
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

void convert_images(thread_pool& pool, std::int64_t batch, std::int64_t channels, std::int64_t pixels,
                    const float* from, const image_layout& from_layout, float* to, const image_layout& to_layout) {
  const image_conversion<float> images(batch, channels, pixels);
  if (to_layout.channels_last)
    images.to_channels_last(pool, from, to, to_layout.step);
  else
    images.to_planes(pool, from, from_layout.step, to, to_layout.planes ? to_layout.planes->image : 0,
                     [](std::int64_t, std::int64_t, std::int64_t) {});
}

template <class To, class From, class Load>
void convert_tiles(const From* in, To* out, std::int64_t n, Load each) {
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
    .gains_from_channels_last =
        [](const conv_problem& p) { return gains_from_channels_last<float>(p, this_machine()); },
    .choose_conv_method = [](const conv_problem& p, bool in_last,
                             bool out_last) { return choose_conv_method<float>(p, in_last, out_last, this_machine()); },
    .conv_cost = [](const conv_problem& p, conv_method method, bool in_last,
                    bool out_last) { return conv_cost<float>(p, in_last, out_last, this_machine()).of(method); },
    .conv_weight_floats = conv_weights_size<float>,
    .pack_conv_weights = pack_conv_weights<float>,
    .plan_conv = plan_conv,
    .convert_images = convert_images,
    .attention_scratch_floats = attention_scratch_size,
    .attention = attention,
    .pool = pool_planes,
    .pool_images = pool_images,
    .lrn = local_response_norm,
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const isa_table* kiln_eigen_isa() { return &table; }

}  // namespace kiln::eigen
