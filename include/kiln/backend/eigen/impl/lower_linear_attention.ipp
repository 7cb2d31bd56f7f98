#include <algorithm>
#include <cstring>

#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/kernel/simd/vector.hpp"
#include "kiln/op/sequence/linear_attention.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using V = native_vec<float>;
constexpr std::int64_t lanes = native_lanes<float>;

V load(const float* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// f(offset, number) for whole vectors of a row, and for what is left of it.
template <class F> void for_vectors(std::int64_t width, const F& f) {
  std::int64_t i = 0;
  for (; i + lanes <= width; i += lanes) f(i, static_cast<int>(lanes));
  if (i < width) f(i, static_cast<int>(width - i));
}
V load_some(const float* p, int n) { return n == lanes ? load(p) : load_n<V>(p, n); }
void store_some(float* p, V v, int n) {
  if (n == lanes)
    std::memcpy(p, &v, sizeof v);
  else
    store_n<V>(p, v, n);
}

// The state of each sequence and head is a task of its own: its rows stay in the cache from step to step.
class linear_attention_kernel final : public kernel {
 public:
  explicit linear_attention_kernel(const op::linear_attention& op) : op_(op) {}
  std::string name() const override { return "linear_attention"; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned threads) const override {
    return threads * static_cast<std::size_t>(rows_of(in) * row_of(in)) * sizeof(float);
  }
  void run(const launch& l) const override {
    const tensor &k = l.in[1], &state = l.out[1];
    if (state.elements() == 0) return;
    const std::int64_t own = k.lens[2], part = rows_of(l.in) * row_of(l.in);
    l.pool->parallel_for(l.in[0].lens[0] * own, [&](std::int64_t task, unsigned worker) {
      run_head(l, task / own, task % own, reinterpret_cast<float*>(l.scratch.data()) + worker * part);
    });
  }

 private:
  // What is written into the state, and sums of each query that reads it.
  static std::int64_t rows_of(std::span<const tensor> in) {
    return 1 + in[0].lens[2] / std::max<std::int64_t>(1, in[1].lens[2]);
  }
  static std::int64_t row_of(std::span<const tensor> in) { return (in[2].lens[3] + 15) / 16 * 16; }

  void run_head(const launch& l, std::int64_t b, std::int64_t h, float* scratch) const {
    const tensor &q = l.in[0], &k = l.in[1];
    const std::int64_t steps = q.lens[1], heads = q.lens[2], own = k.lens[2], depth = q.lens[3],
                       width = l.in[2].lens[3];
    const std::int64_t each = heads / own, row = row_of(l.in);
    float* const s = l.out[1].as<float>() + (b * own + h) * depth * width;
    std::copy_n(l.in[3].as<const float>() + (b * own + h) * depth * width, depth * width, s);
    float *const written = scratch, *const sums = scratch + row;
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t at = (b * steps + t) * own + h;
      const float *const key = k.as<const float>() + at * depth, *const fade = l.in[4].as<const float>() + at * depth,
                         *const v = l.in[2].as<const float>() + at * width;
      fade_and_recall(s, key, fade, written, depth, width);
      const float share = op_.corrects ? l.in[5].as<const float>()[at] : 0;
      for_vectors(width, [&](std::int64_t i, int n) {
        const V value = load_some(v + i, n);
        store_some(written + i, op_.corrects ? splat<V>(share) * (value - load_some(written + i, n)) : value, n);
      });
      const std::int64_t first = (b * steps + t) * heads + h * each;
      write_and_read(s, key, written, q.as<const float>() + first * depth, sums, each, row, depth, width);
      for (std::int64_t r = 0; r < each; ++r)
        for_vectors(width, [&](std::int64_t i, int n) {
          store_some(l.out[0].as<float>() + (first + r) * width + i,
                     splat<V>(op_.scale) * load_some(sums + r * row + i, n), n);
        });
    }
  }
  // S = decay * S, and what it holds under the key.
  void fade_and_recall(float* s, const float* key, const float* fade, float* held, std::int64_t depth,
                       std::int64_t width) const {
    std::fill_n(held, width, 0.0F);
    for (std::int64_t d = 0; d < depth; ++d)
      for_vectors(width, [&](std::int64_t i, int n) {
        const V faded = load_some(s + d * width + i, n) * splat<V>(fade[d]);
        store_some(s + d * width + i, faded, n);
        if (op_.corrects)
          store_some(held + i, kernels::multiply_add(faded, splat<V>(key[d]), load_some(held + i, n)), n);
      });
  }
  // S += key (x) written, and what it holds under each query.
  static void write_and_read(float* s, const float* key, const float* written, const float* q, float* sums,
                             std::int64_t each, std::int64_t row, std::int64_t depth, std::int64_t width) {
    std::fill_n(sums, each * row, 0.0F);
    for (std::int64_t d = 0; d < depth; ++d)
      for_vectors(width, [&](std::int64_t i, int n) {
        const V now =
            kernels::multiply_add(splat<V>(key[d]), load_some(written + i, n), load_some(s + d * width + i, n));
        store_some(s + d * width + i, now, n);
        for (std::int64_t r = 0; r < each; ++r) {
          float* const sum = sums + r * row + i;
          store_some(sum, kernels::multiply_add(splat<V>(q[r * depth + d]), now, load_some(sum, n)), n);
        }
      });
  }

  const op::linear_attention op_;
};

}  // namespace

std::unique_ptr<kernel> lower_linear_attention(const kernel_request& r) {
  const auto* attention = r.instruction.op.get_if<op::linear_attention>();
  if (!attention || r.inputs[0].type != dtype::f32) return nullptr;
  return std::make_unique<linear_attention_kernel>(*attention);
}

}  // namespace kiln::eigen
