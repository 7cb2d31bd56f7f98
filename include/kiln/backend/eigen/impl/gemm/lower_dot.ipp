#include <algorithm>
#include <limits>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/matrices.hpp"
#include "kiln/backend/eigen/stored_packing.hpp"
#include "kiln/backend/eigen/stored_products.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"
#include "kiln/runtime/widened_constant.hpp"

namespace kiln::eigen {
namespace {

using kernels::gemm_problem;

class dot_kernel final : public kernel {
 public:
  /// `task_rows` as in `kernels::gemm_problem`.
  dot_kernel(fused_contraction body, const kernel_request& r, std::int64_t task_rows)
      : body_(std::move(body)),
        task_rows_(r.decide(std::numeric_limits<std::int64_t>::max(), [&] { return task_rows; })) {
    const isa_table& isa = *kiln_eigen_isa();
    const std::size_t weights = body_.operands[1];
    if (const widened_constant w = find_widened_constant(r.graph, r.instruction.inputs[weights]);
        w && !r.constants[weights] && !r.near_constants && is_one_matrix(r.constant_layouts[weights])) {
      stored_ = static_cast<dtype>(r.decide(dtype_count, [&] { return w.from->get_shape().type; }));
      packed_ = packed_matrix<half>(r, *w.from, w.at, isa.packed_b_floats, [&](auto& pool, half* to, auto... from) {
        kiln_eigen_pack_stored(pool, stored_, reinterpret_cast<std::byte*>(to), from...);
      });
      return;
    }
    if (is_constant_matrix(r, weights))
      stored_ = static_cast<dtype>(r.decide(dtype_count, [&] { return type_to_store(r, weights); }));
    if (stored_ == dtype::f32) {
      packed_ = packed_constant<float>(r, weights, isa.packed_b_floats, isa.pack_b);
      return;
    }
    const auto pack = [&](thread_pool& pool, float* to, const void* from, std::ptrdiff_t row, std::ptrdiff_t col,
                          std::int64_t k, std::int64_t n) {
      kiln_eigen_stored_products()->pack(pool, stored_, reinterpret_cast<std::byte*>(to), from, row, col, k, n);
    };
    packed_ = packed_constant<float>(r, weights, isa.packed_b_floats, pack, size_of(stored_));
  }

  std::string name() const override {
    return std::string("dot") + (body_.epilogue ? "+epilogue" : "") +
           (!packed_                ? ""
            : stored_ == dtype::f32 ? " (packed)"
                                    : " (packed, " + std::string(to_string(stored_)) + ")");
  }
  bool packed_input(std::size_t i) const override { return packed_ && i == body_.operands[1]; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const tensor product = product_place(out[0], nullptr);
    const std::int64_t cols = product.lens.back(), rows = product.elements() / std::max<std::int64_t>(1, cols);
    const auto floats = stored_ != dtype::f32 ? kiln_eigen_stored_products()->scratch_floats
                        : packed_             ? isa.gemm_scratch_floats
                                              : isa.gemm_unpacked_scratch_floats;
    auto n = static_cast<std::size_t>(floats(rows, cols, in[body_.operands[0]].lens.back(), threads)) * sizeof(float);
    if (body_.epilogue && !tiled_epilogue(body_, in, out[0], 1).fits())
      n = std::max(n, epilogue_scratch_bytes(body_, in, product, out[0], threads));
    return product_bytes(out[0]) + turned_bytes(in[body_.operands[0]], cols) + n;
  }

  void run(const launch& l) const override {
    const isa_table& isa = *kiln_eigen_isa();
    tensor a = l.in[body_.operands[0]];
    const tensor& b = l.in[body_.operands[1]];
    if (l.out[0].elements() == 0) return;
    std::optional<tensor> other;
    if (l.out[0].type != dtype::f32) other = product_place(l.out[0], l.scratch.data());
    const std::size_t turned = turned_bytes(a, l.out[0].lens.back());
    if (turned != 0) {
      const tensor rows{l.scratch.data() + product_bytes(l.out[0]), a.type, a.lens, row_major(a.lens)};
      copy_tensor(a, rows, l.pool);
      a = rows;
    }
    const tensor& c = other ? *other : l.out[0];
    kernels::affine_epilogue<float> affine;
    gemm_problem<float> p;
    p.task_rows = task_rows_;
    const batched_matrices<float> matrices(a, b, c, bool(packed_), p);
    // rows of a loop over batches are counted anew, which an affine epilogue can't follow
    const bool simple = matrices.even() && body_.bind(l.in, l.out[0], 1, affine);
    const std::span<std::byte> scratch = l.scratch.subspan(product_bytes(l.out[0]) + turned);
    auto* const floats = reinterpret_cast<float*>(scratch.data());
    const auto multiply = [&](const gemm_epilogue& epilogue) {
      if (stored_ != dtype::f32)
        kiln_eigen_stored_products()->multiply(*l.pool, stored_, p, packed_.data(), floats, epilogue);
      else
        (packed_ ? isa.gemm : isa.gemm_unpacked)(*l.pool, p, floats, epilogue);
    };
    if (packed_) p.b = reinterpret_cast<const float*>(packed_.data());
    if (packed_ && matrices.even() && !body_.activation && (simple || !body_.epilogue)) {
      // small products take no longer than the general case below takes to begin
      p.a = a.as<const float>();
      p.c = c.as<float>();
      return multiply({nullptr, nullptr, simple ? &affine : nullptr});
    }
    std::optional<tiled_epilogue> tiled;
    if (!simple) tiled.emplace(body_, l.in, l.out[0], 1);
    offset_epilogue shifted{simple ? nullptr : &*tiled, 0};
    const bool fused = body_.epilogue && (simple || tiled->fits());
    gemm_epilogue epilogue;
    if (simple) {
      epilogue.affine = &affine;
      epilogue.self = const_cast<fused_contraction*>(&body_);
      if (body_.activation)
        epilogue.call = [](void* self, std::int64_t, std::int64_t rows, std::int64_t, std::int64_t cols, float* at_c,
                           std::ptrdiff_t c_row) {
          static_cast<const fused_contraction*>(self)->apply_activation(rows, cols, at_c, c_row);
        };
    } else if (fused) {
      epilogue.self = &shifted;
      epilogue.call = [](void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                         float* at_c, std::ptrdiff_t c_row) {
        const auto* s = static_cast<const offset_epilogue*>(self);
        s->epilogue->apply(s->row + row0, rows, col0, cols, at_c, c_row);
      };
    }
    matrices.each(p, [&] {
      multiply(epilogue);
      shifted.row += p.batch * p.m;
    });
    if (body_.epilogue && !fused) run_epilogue(body_, l.in, c, l.out[0], scratch, *l.pool);
  }

 private:
  // Weights that are all floats of 16 bits are packed as those: half the bytes come from memory, and converting them
  // takes a core 0.5 ns for 16 of them, where the other half of their bytes would take it 2. Near constants come from
  // L2, in less than that.
  static dtype type_to_store(const kernel_request& r, std::size_t input) {
    const literal& weights = *r.constants[input];
    if (!r.near_constants)
      for (const dtype t : {dtype::f16, dtype::bf16})
        if (kiln_eigen_stored_products()->holds(t, weights.bytes(), weights.elements())) return t;
    return dtype::f32;
  }

  // Bytes of a copy of the left operand by rows, where it lies by columns and enough panels of the right operand read
  // it: each would jump from line to line.
  static std::size_t turned_bytes(const tensor& a, std::int64_t cols) {
    constexpr std::int64_t least_rows = 16, least_depth = 64, least_cols = 128;
    const std::size_t rank = a.rank();
    const std::int64_t rows = a.lens[rank - 2], depth = a.lens[rank - 1];
    if (rows < least_rows || depth < least_depth || cols < least_cols) return 0;
    if (a.strides[rank - 2] != 1 || a.strides[rank - 1] == 1) return 0;
    for (std::size_t d = 0; d + 2 < rank; ++d)
      if (a.lens[d] != 1 && a.strides[d] == 0) return 0;  // the copy would repeat
    return (static_cast<std::size_t>(a.elements()) * sizeof(float) + 63) / 64 * 64;
  }

  struct offset_epilogue {
    const tiled_epilogue* epilogue;
    std::int64_t row;
  };

  fused_contraction body_;
  std::int64_t task_rows_;
  dtype stored_ = dtype::f32;  // of the packed weights
  buffer packed_;
};

// Rows of a task: those of `gemm_problem`, and others where the product has so many.
std::vector<std::int64_t> task_rows_worth_timing(const fused_contraction& body, const kernel_request& r) {
  std::vector<std::int64_t> out = {gemm_problem<float>().task_rows};
  const shape& result = r.instruction.results[0];
  if (!r.tuning || !r.constants[body.operands[1]] || !result.is_constant() || result.rank() < 2) return out;
  const std::int64_t cols = result.lens.back().value();
  const std::int64_t rows = product(to_ints(result.lens)) / std::max<std::int64_t>(1, cols);
  // The matrix unit, where it takes the product, cuts it by itself.
  const shape& right = r.inputs[body.operands[1]];
  const gemm_problem<float> whole{.m = rows, .n = cols, .k = right.lens[right.rank() - 2].value()};
  if (kiln_eigen_isa()->gains_from_matrix_unit(whole)) return out;
  for (std::int64_t n : {64, 256, 512})
    if (n < 2 * rows && rows > 64) out.push_back(n);
  return out;
}

}  // namespace

std::unique_ptr<kernel> lower_dot(const kernel_request& r) {
  auto body = read_contraction(r);
  if (!body || !body->op.is<op::dot>()) return nullptr;
  for (std::size_t k : body->operands)
    if (r.inputs[k].type != dtype::f32) return nullptr;
  if (r.instruction.results.size() != 1) return nullptr;
  const std::vector<std::int64_t> rows = task_rows_worth_timing(*body, r);
  if (rows.size() == 1) return std::make_unique<dot_kernel>(std::move(*body), r, rows[0]);
  kernel_candidates all;
  for (std::int64_t n : rows) all.names.push_back("tasks of " + std::to_string(n) + " rows");
  all.make = [&](std::size_t k) { return std::make_unique<dot_kernel>(read_contraction(r).value(), r, rows[k]); };
  return make_best(r, all);
}

}  // namespace kiln::eigen
