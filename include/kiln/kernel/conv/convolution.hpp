#pragma once

#include <cstring>
#include <variant>
#include <vector>

#include "kiln/kernel/conv/depthwise_nchw.hpp"
#include "kiln/kernel/conv/direct_channels.hpp"
#include "kiln/kernel/conv/direct_rows.hpp"
#include "kiln/kernel/conv/im2col.hpp"
#include "kiln/kernel/conv/method.hpp"
#include "kiln/kernel/conv/winograd/convolution_1d.hpp"

namespace kiln::kernels {

/// The epilogue that leaves a convolution's sums as they are.
struct no_conv_epilogue {
  template <class T>
  void operator()(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*, std::ptrdiff_t) const {}
};

/// A convolution's epilogue as that of a product whose rows are pixels.
template <class Epilogue> struct epilogue_of_pixels {
  Epilogue& epilogue;

  template <class T>
  void operator()(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, T* c,
                  std::ptrdiff_t c_row) const {
    epilogue(std::int64_t{0}, col0, cols, row0, rows, c, c_row);
  }
  template <class T>
  bool in_registers(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                    tile_epilogue<T>& to) const {
    return applies_in_registers(epilogue, std::int64_t{0}, col0, cols, row0, rows, to);
  }
};

/// Elements of the weights that `convolution::run` reads.
template <class T> std::int64_t conv_weights_size(const conv_problem& p, conv_method method) {
  switch (method) {
    case conv_method::direct_channels: return direct_channels_convolution<T>::weights_size(p);
    case conv_method::winograd_1d: return winograd_1d_convolution<T>::weights_size(p);
    case conv_method::nhwc_gemm: return nhwc_gemm_convolution<T>::weights_size(p);
    case conv_method::winograd_2x2:
      return with_winograd_2x2<T>(p, [&]<class Winograd>() { return Winograd::weights_size(p); });
    case conv_method::winograd_4x4: return winograd_convolution<T, 4>::weights_size(p);
    case conv_method::depthwise_nhwc: return depthwise_nhwc_convolution<T>::weights_size(p);
    default: return p.out_channels * p.depth();
  }
}

/// Writes the weights, which may be at any address, in the order that `method` reads; independent of the spatial sizes.
template <class T>
void pack_conv_weights(thread_pool& pool, const conv_problem& p, conv_method method, T* to, const std::byte* weights) {
  const auto bytes = static_cast<std::size_t>(p.out_channels * p.depth()) * sizeof(T);
  const auto aligned = [&](auto&& pack) {  // of methods for few weights
    if (reinterpret_cast<std::uintptr_t>(weights) % alignof(T) == 0) return pack(reinterpret_cast<const T*>(weights));
    std::vector<T> copy(bytes / sizeof(T));
    std::memcpy(copy.data(), weights, bytes);
    pack(copy.data());
  };
  switch (method) {
    case conv_method::direct_channels: return direct_channels_convolution<T>::pack_weights(pool, p, to, weights);
    case conv_method::winograd_1d:
      return aligned([&](const T* w) { winograd_1d_convolution<T>::pack_weights(pool, p, to, w); });
    case conv_method::nhwc_gemm: return nhwc_gemm_convolution<T>::pack_weights(pool, p, to, weights);
    case conv_method::winograd_2x2:
      return with_winograd_2x2<T>(p, [&]<class Winograd>() { Winograd::pack_weights(pool, p, to, weights); });
    case conv_method::winograd_4x4: return winograd_convolution<T, 4>::pack_weights(pool, p, to, weights);
    case conv_method::depthwise_nhwc:
      return aligned([&](const T* w) { depthwise_nhwc_convolution<T>::pack_weights(p, to, w); });
    default:
      if (bytes != 0) std::memcpy(to, weights, bytes);
  }
}

/// A convolution planned for its sizes and for at most `workers` workers; running it allocates nothing. Where a method
/// needs another layout than the input's or output's, tensors are converted in scratch.
template <class T> class convolution {
 public:
  /// `has_prologue`: runs pass a prologue, which the method applies itself or which is applied to a copy of the input.
  convolution(const conv_problem& problem, unsigned workers, conv_method method, image_layout in = {},
              image_layout out = {}, bool has_prologue = false)
      : problem_(problem),
        method_(method),
        workers_(workers),
        fuses_prologue_(has_prologue && method == conv_method::nhwc_gemm && in.nhwc && problem.pointwise() &&
                        problem.groups == 1),
        copies_prologue_(has_prologue && !fuses_prologue_),
        given_step_(in.step),
        in_{in.nhwc, copies_prologue_ ? problem.in_channels : in.step},
        out_(out),
        convert_in_(!reads_either_layout(method) && in.nhwc != reads_nhwc(method)),
        convert_out_(!writes_either_layout(method) && out.nhwc != reads_nhwc(method)),
        body_(plan(problem, workers, method, {in.nhwc, convert_in_ ? problem.in_channels : in_.step}, out)) {}

  conv_method method() const { return method_; }

  /// Elements of scratch, aligned to 64 bytes, that a run needs.
  std::int64_t scratch_size() const { return prologue_copy() + input_copy() + output_copy() + body_scratch(); }

  /// Reads images [batch, in_channels, D, H, W] and weights (as `pack_conv_weights` wrote them), writes images [batch,
  /// out_channels, D', H', W'], in the layouts planned for. `epilogue(image, channel0, channels, pixel0, pixels, c,
  /// c_row)` is called once for each finished tile while it is in the cache, from any worker; rows are channels and
  /// columns pixels, or the reverse where the output's layout is NHWC (then pixels count through the batch and
  /// `image` is 0). `pool` has at most the planned number of workers. `prologue` is null unless one was planned for.
  template <class Epilogue = no_conv_epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue = {},
           const channel_prologue<T>* prologue = nullptr) const {
    if (problem_.empty()) return;
    if (copies_prologue_) {
      apply(pool, *prologue, input, scratch);
      input = scratch;
      scratch += prologue_copy();
    }
    const image_conversion<T> inputs(problem_.batch, problem_.in_channels, problem_.input_pixels());
    const image_conversion<T> outputs(problem_.batch, problem_.out_channels, problem_.output_pixels());
    std::ptrdiff_t in_step = in_.step, out_step = out_.step;
    const T* from = input;
    if (convert_in_) {
      if (reads_nhwc(method_))
        inputs.to_nhwc(pool, input, scratch, in_step = problem_.in_channels);
      else
        inputs.to_nchw(pool, input, in_step, scratch, 0, [](std::int64_t, std::int64_t, std::int64_t) {});
      from = scratch;
    }
    T* const to = convert_out_ ? scratch + input_copy() : output;
    T* const own = scratch + input_copy() + output_copy();
    if (reads_either_layout(method_)) return run_winograd_nchw(pool, input, weights, output, own, epilogue);
    if (!reads_nhwc(method_)) {
      if (convert_out_) {
        run_nchw(pool, from, weights, to, own, no_conv_epilogue{});
        const std::int64_t pixels = problem_.output_pixels();
        outputs.to_nhwc(pool, to, output, out_step);
        apply_to_pixels(pool, output, problem_.batch * pixels, epilogue);
        return;
      }
      return run_nchw(pool, from, weights, to, own, epilogue);
    }
    if (!convert_out_)
      return run_nhwc(pool, from, in_step, weights, to, out_step, own,
                      epilogue_of_pixels<std::remove_reference_t<Epilogue>>{epilogue}, prologue);
    out_step = problem_.out_channels;
    run_nhwc(pool, from, in_step, weights, to, out_step, own, no_epilogue{}, prologue);
    const std::int64_t pixels = problem_.output_pixels(), channels = problem_.out_channels;
    outputs.to_nchw(pool, to, out_step, output, 0, [&](std::int64_t image, std::int64_t pixel, std::int64_t count) {
      epilogue(image, std::int64_t{0}, channels, pixel, count, output + image * channels * pixels + pixel, pixels);
    });
  }

 private:
  using body =
      std::variant<direct_channels_convolution<T>, im2col_convolution<T>, depthwise_nchw_convolution<T>,
                   direct_rows_convolution<T>, winograd_1d_convolution<T>, nhwc_gemm_convolution<T>,
                   winograd_convolution<T, 2>, winograd_convolution<T, 2, 5>, winograd_convolution<T, 2, 3, 2>,
                   winograd_convolution<T, 2, 5, 2>, winograd_convolution<T, 4>, depthwise_nhwc_convolution<T>>;

  static body plan(const conv_problem& p, unsigned workers, conv_method method, const image_layout& in,
                   const image_layout& out) {
    switch (method) {
      case conv_method::direct_channels: return direct_channels_convolution<T>(p, workers);
      case conv_method::im2col: return im2col_convolution<T>(p, strides_of(p, out));
      case conv_method::depthwise_nchw: return depthwise_nchw_convolution<T>(p, strides_of(p, out));
      case conv_method::direct_rows: return direct_rows_convolution<T>(p, workers);
      case conv_method::winograd_1d: return winograd_1d_convolution<T>(p, workers, out);
      case conv_method::nhwc_gemm: return nhwc_gemm_convolution<T>(p, workers, in.step);
      case conv_method::winograd_2x2:
        return with_winograd_2x2<T>(p, [&]<class Winograd>() -> body { return Winograd(p, workers, in, out); });
      case conv_method::winograd_4x4: return winograd_convolution<T, 4>(p, workers, in, out);
      case conv_method::depthwise_nhwc: break;
    }
    return depthwise_nhwc_convolution<T>(p);
  }

  // A copy of the output is row-major.
  static nchw_strides strides_of(const conv_problem& p, const image_layout& out) {
    return out.nchw ? *out.nchw : nchw_strides::row_major(p.out_channels, p.output_pixels());
  }
  static std::int64_t rounded(std::int64_t n) { return round_up(n, 64 / static_cast<std::int64_t>(sizeof(T))); }
  std::int64_t input_copy() const {
    return convert_in_ ? rounded(problem_.batch * problem_.in_channels * problem_.input_pixels()) : 0;
  }
  std::int64_t output_copy() const {
    return convert_out_ ? rounded(problem_.batch * problem_.out_channels * problem_.output_pixels()) : 0;
  }
  // The prologue's results where the method does not apply it: a dense copy in the input's layout.
  std::int64_t prologue_copy() const {
    return copies_prologue_ ? rounded(problem_.batch * problem_.in_channels * problem_.input_pixels()) : 0;
  }
  void apply(thread_pool& pool, const channel_prologue<T>& prologue, const T* from, T* to) const {
    const std::int64_t channels = problem_.in_channels, pixels = problem_.input_pixels();
    if (channels == 0) return;
    if (!in_.nhwc) {
      // in pieces, so that few large channels keep all workers busy
      constexpr std::int64_t piece = 16384;
      const std::int64_t pieces = ceil_div(pixels, piece);
      return pool.parallel_for(problem_.batch * channels * pieces, [&](std::int64_t task, unsigned) {
        const std::int64_t plane = task / pieces, first = task % pieces * piece, at = plane * pixels + first;
        prologue.of_image(plane / channels)
            .of_plane(from + at, to + at, plane % channels, std::min(piece, pixels - first));
      });
    }
    const std::int64_t all = problem_.batch * pixels, each = std::max<std::int64_t>(1, 4096 / channels);
    pool.parallel_for(ceil_div(all, each), [&](std::int64_t task, unsigned) {
      for (std::int64_t i = task * each; i < std::min(all, (task + 1) * each); ++i)
        prologue.of_image(i / pixels).of_pixel(from + i * given_step_, to + i * channels, 0, channels);
    });
  }
  std::int64_t body_scratch() const {
    if (fuses_prologue_) return rounded(std::get<nhwc_gemm_convolution<T>>(body_).prologue_scratch_size()) * workers_;
    return std::visit(
        [&](const auto& b) -> std::int64_t {
          if constexpr (requires { b.scratch_size(workers_); })
            return b.scratch_size(workers_);
          else if constexpr (requires { b.scratch_size(); })
            return rounded(b.scratch_size()) * workers_;
          else
            return 0;
        },
        body_);
  }

  template <class Epilogue>
  void run_nchw(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    if (const auto* b = std::get_if<direct_channels_convolution<T>>(&body_))
      b->run(pool, input, weights, output, out_, scratch, epilogue);
    else if (const auto* c = std::get_if<im2col_convolution<T>>(&body_))
      c->run(pool, input, weights, output, scratch, epilogue);
    else if (const auto* d = std::get_if<depthwise_nchw_convolution<T>>(&body_))
      d->run(pool, input, weights, output, scratch, epilogue);
    else if (const auto* e = std::get_if<direct_rows_convolution<T>>(&body_))
      e->run(pool, input, weights, output, scratch, epilogue);
    else if (const auto* f = std::get_if<winograd_1d_convolution<T>>(&body_))
      f->run(pool, input, weights, output, scratch, epilogue);
  }

  template <class Epilogue>
  void run_winograd_nchw(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch,
                         Epilogue&& epilogue) const {
    const auto run_by = [&]<class Winograd>() {
      std::get<Winograd>(body_).run(pool, input, weights, output, scratch, epilogue);
    };
    if (method_ == conv_method::winograd_4x4)
      run_by.template operator()<winograd_convolution<T, 4>>();
    else
      with_winograd_2x2<T>(problem_, run_by);
  }

  template <class Epilogue>
  void run_nhwc(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
                std::ptrdiff_t out_step, T* scratch, Epilogue&& epilogue, const channel_prologue<T>* prologue) const {
    const auto* b = std::get_if<nhwc_gemm_convolution<T>>(&body_);
    if (b && fuses_prologue_)
      b->run_with_prologue(pool, *prologue, input, in_step, weights, output, out_step, scratch, epilogue);
    else if (b)
      b->run(pool, input, in_step, weights, output, out_step, scratch, epilogue);
    else if (const auto* c = std::get_if<depthwise_nhwc_convolution<T>>(&body_))
      c->run(pool, input, in_step, weights, output, out_step, epilogue);
  }

  template <class Epilogue>
  void apply_to_pixels(thread_pool& pool, T* output, std::int64_t pixels, Epilogue&& epilogue) const {
    constexpr std::int64_t each = 64;
    pool.parallel_for(ceil_div(pixels, each), [&](std::int64_t task, unsigned) {
      const std::int64_t first = task * each;
      epilogue(std::int64_t{0}, std::int64_t{0}, problem_.out_channels, first, std::min(each, pixels - first),
               output + first * out_.step, out_.step);
    });
  }

  conv_problem problem_;
  conv_method method_;
  unsigned workers_;
  bool fuses_prologue_, copies_prologue_;  // the method applies the prologue; a copy of the input holds its results
  std::ptrdiff_t given_step_;              // pixel stride of the input, before a prologue's copy
  image_layout in_, out_;
  bool convert_in_, convert_out_;
  body body_;
};

}  // namespace kiln::kernels
