#include <algorithm>

#include "kiln/backend/hip/impl/gemm/blas.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/separate_epilogue.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

class dot_kernel final : public gpu_kernel {
 public:
  dot_kernel(fused_contraction from, const kernel_request& r, const context_pointer& where)
      : gpu_kernel(where, from.epilogue ? "dot+epilogue" : "dot"),
        body_(std::move(from.body)),
        epilogue_(std::move(from.epilogue)),
        constant_(r.constants[body_.operands[1]] != nullptr) {}
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override { built_for(in, out); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    const auto made = built_for(in, out);
    return made->blas ? made->blas->scratch_bytes() : made->plan.scratch_bytes;
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    auto made = built_for(l.in, l.out);
    if (made->blas && !made->blas->run(*l.queue, l.scratch, l.in[body_.operands[0]].data, l.in[body_.operands[1]].data,
                                       l.out[0].data))
      made = built_for(l.in, l.out, false);
    if (made->blas) {
      std::vector<const void*> extra;
      for (std::size_t i : body_.epilogue_inputs) extra.push_back(l.in[i].data);
      if (made->epilogue) made->epilogue.run(*l.queue, l.out[0].data, extra);
      return;
    }
    if (made->plan.scratch_bytes > l.scratch.size())
      raise(errc::internal, "scratch memory of a product: expected " + std::to_string(made->plan.scratch_bytes) +
                                " bytes, found " + std::to_string(l.scratch.size()));
    const std::vector<const tensor*> all = operands(l.in, l.out[0]);
    const std::size_t outer = made->outer.extent.size();
    std::vector<std::int64_t> at(outer, 0);
    for (;;) {
      std::vector<const void*> address;
      for (std::size_t k = 0; k < all.size(); ++k) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < outer; ++d) offset += at[d] * made->outer.step[k][d];
        address.push_back(all[k]->data + offset * static_cast<std::int64_t>(size_of(all[k]->type)));
      }
      const bool last = outer != 0 && at[outer - 1] + 1 == made->outer.extent[outer - 1];
      run_gemm(made->plan, *made->run, *l.queue, l.scratch, address[0], address[1], const_cast<void*>(address.back()),
               std::span(address).subspan(2, all.size() - 3), last ? made->last_entries : 0);
      std::size_t d = outer;
      while (d > 0 && ++at[d - 1] == made->outer.extent[d - 1]) at[--d] = 0;
      if (d == 0) return;
    }
  }

 private:
  struct built {
    gemm_plan plan;
    loop_nest outer;                // batch dims beyond two, or parts of a long one: launches of their own
    std::int64_t last_entries = 0;  // of the last part, where it has fewer
    std::shared_ptr<const function> run;
    std::shared_ptr<const blas_gemm> blas;  // instead of these, with the epilogue after it
    separate_epilogue epilogue;
  };

  // a, b, the epilogue's operands, the result
  std::vector<const tensor*> operands(std::span<const tensor> in, const tensor& out) const {
    std::vector<const tensor*> all = {&in[body_.operands[0]], &in[body_.operands[1]]};
    for (std::size_t i : body_.epilogue_inputs) all.push_back(&in[i]);
    all.push_back(&out);
    return all;
  }

  // `library`: the platform's may compute it.
  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out,
                                         bool library = true) const {
    return (library ? built_ : built_here_).get(key_of(in, out), [&] {
      built made;
      if (out[0].elements() != 0) {
        const gemm_problem p = problem(operands(in, out[0]), made.outer, made.last_entries);
        if (library && made.outer.extent.empty()) made.blas = blas_gemm::find_for_large(p, where());
        if (made.blas) {
          if (epilogue_) made.epilogue = separate_epilogue(*epilogue_, body_, in, out, where());
          return made;
        }
        made.plan = plan_gemm(p, epilogue_ ? &*epilogue_ : nullptr, where());
        made.run = where().build(made.plan.what);
        made.plan.what.text.clear();
      }
      return made;
    });
  }

  gemm_problem problem(const std::vector<const tensor*>& all, loop_nest& outer, std::int64_t& last_entries) const {
    const tensor &a = *all[0], &b = *all[1], &out = *all.back();
    const std::size_t rank = out.rank(), row = rank - 2, col = rank - 1;
    std::vector<tensor> copies;
    for (const tensor* t : all) copies.push_back(*t);
    std::vector<bool> use(rank, true);
    use[row] = use[col] = false;
    const std::span<const tensor> every(copies);
    loop_nest batch = make_nest({out.lens.data(), rank}, every.first(all.size() - 1), every.last(1), use, false);

    gemm_problem p;
    p.type = a.type, p.constant_b = constant_;
    p.rows = out.lens[row], p.cols = out.lens[col], p.depth = a.lens[rank - 1];
    std::vector<std::int64_t> row_step;
    for (const tensor* t : all) row_step.push_back(t->lens[row] == 1 ? 0 : t->strides[row]);
    // a batch that shares its right factor is more rows of one product
    while (!batch.extent.empty() && batch.step[1].back() == 0) {
      bool even = p.rows * batch.extent.back() < (1 << 30);
      for (std::size_t k = 0; k < all.size(); ++k)
        even = even && (k == 1 || p.rows == 1 || batch.step[k].back() == row_step[k] * p.rows);
      if (!even) break;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (p.rows == 1 && k != 1) row_step[k] = batch.step[k].back();
        batch.step[k].pop_back();
      }
      p.rows *= batch.extent.back();
      batch.extent.pop_back();
    }
    outer = batch;
    std::vector<std::array<std::int64_t, 2>> inner(all.size(), {0, 0});
    last_entries = take_batch(p, outer, inner, most_gemm_entries);
    // addresses of later launches keep the first one's alignment where all steps are multiples of it
    const auto alignment = [&](std::size_t k) {
      std::size_t n = alignment_of(all[k]->data);
      for (std::int64_t s : outer.step[k])
        n = std::min(n, s == 0 ? n
                               : alignment_of(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(std::abs(s)) *
                                                                            size_of(all[k]->type))));
      return n;
    };
    p.a = factor(a, p.rows, row_step[0], col, inner[0], alignment(0));
    p.b = factor(b, p.cols, b.strides[col], row, inner[1], alignment(1));
    const auto place = [&](std::size_t k) {
      const tensor& t = *all[k];
      const std::int64_t across = t.lens[col] != 1 ? t.strides[col] : k + 1 == all.size() ? 1 : 0;
      p.steps.push_back({inner[k][0], inner[k][1], row_step[k], across});
      p.types.push_back(t.type);
      p.aligned.push_back(alignment(k));
    };
    place(all.size() - 1);
    for (std::size_t k = 2; k + 1 < all.size(); ++k) place(k);
    return p;
  }

  static gemm_factor factor(const tensor& t, std::int64_t rows, std::int64_t row_step, std::size_t depth,
                            const std::array<std::int64_t, 2>& batch, std::size_t aligned) {
    if (rows == 1) row_step = 0;
    const std::int64_t depth_step = t.lens[depth] == 1 ? 0 : t.strides[depth];
    gemm_factor f;
    int vector = 1;
    if (depth_step == 1) {
      vector = vector_of(size_of(t.type), aligned, {row_step, batch[0], batch[1]});
    } else if (row_step == 1) {
      f.depth_contiguous = false;
      vector = vector_of(size_of(t.type), aligned, {depth_step, batch[0], batch[1]});
    }
    f.vector = vector;
    f.value = matrix_argument{nullptr, {batch[0], batch[1]}, row_step, depth_step};
    return f;
  }

  lower::contraction_body<module_graph> body_;
  std::optional<row_program> epilogue_;
  bool constant_ = false;
  by_sizes<built> built_, built_here_;
};

}  // namespace

std::unique_ptr<kernel> lower_dot(const kernel_request& r, const context_pointer& where) {
  auto from = read_contraction(r);
  if (!from || !from->body.op.is<op::dot>()) return nullptr;
  return std::make_unique<dot_kernel>(std::move(*from), r, where);
}

}  // namespace kiln::hip
