#include <algorithm>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::eigen {
namespace {

using kernels::gemm_problem;

class dot_kernel final : public kernel {
 public:
  /// `task_rows` as in `kernels::gemm_problem`.
  dot_kernel(product_body body, const kernel_request& r, std::int64_t task_rows)
      : body_(std::move(body)), task_rows_(task_rows) {
    const std::size_t rhs = body_.operands[1];
    const literal* weights = r.constants[rhs];
    // one matrix for the whole batch: every leading dim of it repeats
    if (!weights) return;
    const layout& l = r.constant_layouts[rhs];
    for (std::size_t d = 0; d + 2 < l.lens.size(); ++d)
      if (!(l.strides[d] == dimension(0)) && !(l.lens[d] == dimension(1))) return;
    pack(*weights, l, r);
  }

  std::string name() const override {
    return std::string("dot") + (body_.tail ? "+epilogue" : "") + (packed_ ? " (packed)" : "");
  }
  bool packed_input(std::size_t i) const override { return packed_ && i == body_.operands[1]; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const tensor product = product_place(out[0], nullptr);
    const std::int64_t cols = product.lens.back(), rows = product.elements() / std::max<std::int64_t>(1, cols);
    const auto floats = packed_ ? isa.gemm_scratch_floats : isa.gemm_unpacked_scratch_floats;
    auto n = static_cast<std::size_t>(floats(rows, cols, in[body_.operands[0]].lens.back(), threads)) * sizeof(float);
    if (body_.tail && !epilogue(body_, in, out[0], 1).fits())
      n = std::max(n, tail_scratch_bytes(body_, in, product, out[0], threads));
    return product_bytes(out[0]) + n;
  }

  void run(const launch& l) const override {
    const isa_table& isa = *kiln_eigen_isa();
    const tensor &a = l.in[body_.operands[0]], &b = l.in[body_.operands[1]];
    if (l.out[0].elements() == 0) return;
    std::optional<tensor> other;
    if (l.out[0].type != dtype::f32) other = product_place(l.out[0], l.scratch.data());
    const tensor& c = other ? *other : l.out[0];
    const std::size_t rank = c.rank();
    kernels::affine_tail<float> affine;
    gemm_problem<float> p;
    p.task_rows = task_rows_;
    p.m = c.lens[rank - 2];
    p.n = c.lens[rank - 1];
    p.k = a.lens[rank - 1];
    p.a_row = a.strides[rank - 2];
    p.a_col = a.strides[rank - 1];
    p.b_row = packed_ ? 0 : b.strides[rank - 2];
    p.b_col = packed_ ? 1 : b.strides[rank - 1];
    p.c_row = c.strides[rank - 2];
    // the innermost batch dims that step evenly in every operand are one batch; the rest are a loop
    std::size_t split = rank - 2;
    p.batch = 1;
    const auto b_step = [&](std::size_t d) { return packed_ ? 0 : b.strides[d]; };
    for (; split > 0; --split) {
      const std::size_t d = split - 1;
      if (c.lens[d] == 1) continue;
      if (p.batch == 1) {
        p.a_batch = a.strides[d], p.b_batch = b_step(d), p.c_batch = c.strides[d];
      } else if (a.strides[d] != p.a_batch * p.batch || b_step(d) != p.b_batch * p.batch ||
                 c.strides[d] != p.c_batch * p.batch) {
        break;
      }
      p.batch *= c.lens[d];
    }
    // rows of a loop over batches are counted anew, which an affine tail can't follow
    const bool simple = split == 0 && body_.bind(l.in, l.out[0], 1, affine);
    const std::span<std::byte> scratch = l.scratch.subspan(product_bytes(l.out[0]));
    auto* const floats = reinterpret_cast<float*>(scratch.data());
    if (packed_ && split == 0 && !body_.rest && (simple || !body_.tail)) {
      // small products take no longer than the general case below takes to begin
      p.a = a.as<const float>();
      p.b = reinterpret_cast<const float*>(packed_.data());
      p.c = c.as<float>();
      return isa.gemm(*l.pool, p, floats, {nullptr, nullptr, simple ? &affine : nullptr});
    }
    ints outer(std::span<const std::int64_t>(c.lens.data(), split)), at(split, 0);
    std::optional<epilogue> tail;
    if (!simple) tail.emplace(body_, l.in, l.out[0], 1);
    offset_tail shifted{simple ? nullptr : &*tail, 0};
    const bool fused = body_.tail && (simple || tail->fits());
    gemm_tail follow;
    if (simple) {
      follow.affine = &affine;
      follow.self = const_cast<product_body*>(&body_);
      if (body_.rest)
        follow.call = [](void* self, std::int64_t, std::int64_t rows, std::int64_t, std::int64_t cols, float* at_c,
                         std::ptrdiff_t c_row) {
          static_cast<const product_body*>(self)->apply_rest(rows, cols, at_c, c_row);
        };
    } else if (fused) {
      follow.self = &shifted;
      follow.call = [](void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                       float* at_c, std::ptrdiff_t c_row) {
        const auto* s = static_cast<const offset_tail*>(self);
        s->tail->apply(s->row + row0, rows, col0, cols, at_c, c_row);
      };
    }
    do {
      std::int64_t oa = 0, ob = 0, oc = 0;
      for (std::size_t d = 0; d < split; ++d)
        oa += at[d] * a.strides[d], ob += at[d] * b_step(d), oc += at[d] * c.strides[d];
      p.a = a.as<const float>() + oa;
      p.c = c.as<float>() + oc;
      if (packed_) {
        p.b = reinterpret_cast<const float*>(packed_.data());
        isa.gemm(*l.pool, p, floats, follow);
      } else {
        p.b = b.as<const float>() + ob;
        isa.gemm_unpacked(*l.pool, p, floats, follow);
      }
      shifted.row += p.batch * p.m;
    } while (next_index(at, outer));
    if (body_.tail && !fused) run_tail(body_, l.in, c, l.out[0], scratch, *l.pool);
  }

 private:
  struct offset_tail {
    const epilogue* tail;
    std::int64_t row;
  };

  void pack(const literal& weights, const layout& l, const kernel_request& r) {
    const isa_table& isa = *kiln_eigen_isa();
    const std::size_t rank = l.lens.size();
    const std::int64_t k = l.lens[rank - 2].value(), n = l.lens[rank - 1].value();
    packed_ = r.allocate(static_cast<std::size_t>(isa.packed_b_floats(k, n)) * sizeof(float));
    isa.pack_b(*r.pool, reinterpret_cast<float*>(packed_.data()),
               weights.bytes() + l.offset.value() * static_cast<std::int64_t>(sizeof(float)),
               l.strides[rank - 2].value(), l.strides[rank - 1].value(), k, n);
  }

  product_body body_;
  std::int64_t task_rows_;
  buffer packed_;
};

// Rows of a task: those of `gemm_problem`, and others where the product has so many.
std::vector<std::int64_t> task_rows_worth_timing(const product_body& body, const kernel_request& r) {
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
  auto body = split_product(r.whole, r.instruction);
  if (!body || !body->product.is<op::dot>()) return nullptr;
  for (std::size_t k : body->operands)
    if (r.inputs[k].type != dtype::f32) return nullptr;
  if (r.instruction.results.size() != 1) return nullptr;
  const std::vector<std::int64_t> rows = task_rows_worth_timing(*body, r);
  if (rows.size() == 1) return std::make_unique<dot_kernel>(std::move(*body), r, rows[0]);
  kernel_candidates all;
  for (std::int64_t n : rows) all.names.push_back("tasks of " + std::to_string(n) + " rows");
  all.make = [&](std::size_t k) {
    return std::make_unique<dot_kernel>(split_product(r.whole, r.instruction).value(), r, rows[k]);
  };
  return make_best(r, all);
}

}  // namespace kiln::eigen
