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
using kernels::multiply_add;
constexpr std::int64_t strip = 16;  // columns of a state that a task has
constexpr int lanes = native_lanes<float>, vectors = static_cast<int>(strip) / lanes;
static_assert(vectors * lanes == strip);

// Neighboring columns, of which there may be fewer than a strip has: the others are zeros.
struct columns {
  V at[vectors];

  static columns zeros() {
    columns c;
#pragma GCC unroll 8
    for (V& v : c.at) v = splat<V>(0.0F);
    return c;
  }
  static columns load(const float* p) {
    columns c;
    std::memcpy(c.at, p, sizeof c.at);
    return c;
  }
  static columns load(const float* p, std::int64_t n) {
    if (n >= strip) return load(p);
    columns c;
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) c.at[j] = load_n<V>(p + j * lanes, left(n, j));
    return c;
  }
  void store(float* p, std::int64_t n = strip) const {
    if (n >= strip) {
      std::memcpy(p, at, sizeof at);
      return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) store_n<V>(p + j * lanes, at[j], left(n, j));
  }
  static int left(std::int64_t n, int j) { return static_cast<int>(std::clamp<std::int64_t>(n - j * lanes, 0, lanes)); }
};

// Columns of a state do not meet: each task takes a strip of one state through all steps, in memory of its own that the
// first cache holds.
class linear_attention_kernel final : public kernel {
 public:
  explicit linear_attention_kernel(const op::linear_attention& op) : op_(op) {}
  std::string name() const override { return "linear_attention"; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned threads) const override {
    return threads * static_cast<std::size_t>(in[0].lens[3] * strip) * sizeof(float);
  }
  void run(const launch& l) const override {
    const std::int64_t own = l.in[1].lens[2], width = l.in[2].lens[3], strips = (width + strip - 1) / strip;
    l.pool->parallel_for(l.in[0].lens[0] * own * strips, [&](std::int64_t task, unsigned worker) {
      run_strip(l, task / strips / own, task / strips % own, task % strips * strip,
                reinterpret_cast<float*>(l.scratch.data()) + worker * l.in[0].lens[3] * strip);
    });
  }

 private:
  // Columns from `first` on of head h's state, which is s[depth, strip] on the way.
  void run_strip(const launch& l, std::int64_t b, std::int64_t h, std::int64_t first, float* s) const {
    const tensor &q = l.in[0], &k = l.in[1];
    const std::int64_t steps = q.lens[1], heads = q.lens[2], own = k.lens[2], depth = q.lens[3],
                       width = l.in[2].lens[3], each = heads / own, n = std::min(strip, width - first);
    const std::int64_t state = (b * own + h) * depth * width + first;
    for (std::int64_t d = 0; d < depth; ++d)
      columns::load(l.in[3].as<const float>() + state + d * width, n).store(s + d * strip);
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t at = (b * steps + t) * own + h, row = (b * steps + t) * heads + h * each;
      const float *const key = k.as<const float>() + at * depth, *const fade = l.in[4].as<const float>() + at * depth;
      columns written = columns::load(l.in[2].as<const float>() + at * width + first, n);
      if (op_.corrects) {
        const columns held = recalled(s, key, fade, depth);
        const V share = splat<V>(l.in[5].as<const float>()[at]);
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) written.at[j] = share * (written.at[j] - held.at[j]);
      }
      for (std::int64_t r = 0; r < each; ++r) {
        const float* const query = q.as<const float>() + (row + r) * depth;
        columns sum = r == 0 ? write_and_read(s, key, fade, written, query, depth) : read(s, query, depth);
#pragma GCC unroll 8
        for (V& v : sum.at) v = splat<V>(op_.scale) * v;
        sum.store(l.out[0].as<float>() + (row + r) * width + first, n);
      }
    }
    for (std::int64_t d = 0; d < depth; ++d)
      columns::load(s + d * strip).store(l.out[1].as<float>() + state + d * width, n);
  }
  // What the faded state holds under the key.
  static columns recalled(const float* s, const float* key, const float* fade, std::int64_t depth) {
    columns held = columns::zeros();
    for (std::int64_t d = 0; d < depth; ++d) {
      const columns x = columns::load(s + d * strip);
      const V f = splat<V>(fade[d]), k = splat<V>(key[d]);
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) held.at[j] = multiply_add(x.at[j] * f, k, held.at[j]);
    }
    return held;
  }
  // S = decay * S + key (x) written, and what it then holds under the query.
  static columns write_and_read(float* s, const float* key, const float* fade, const columns& written,
                                const float* query, std::int64_t depth) {
    columns sum = columns::zeros();
    for (std::int64_t d = 0; d < depth; ++d) {
      columns x = columns::load(s + d * strip);
      const V f = splat<V>(fade[d]), k = splat<V>(key[d]), q = splat<V>(query[d]);
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        x.at[j] = multiply_add(k, written.at[j], x.at[j] * f);
        sum.at[j] = multiply_add(q, x.at[j], sum.at[j]);
      }
      x.store(s + d * strip);
    }
    return sum;
  }
  static columns read(const float* s, const float* query, std::int64_t depth) {
    columns sum = columns::zeros();
    for (std::int64_t d = 0; d < depth; ++d) {
      const columns x = columns::load(s + d * strip);
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) sum.at[j] = multiply_add(splat<V>(query[d]), x.at[j], sum.at[j]);
    }
    return sum;
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
