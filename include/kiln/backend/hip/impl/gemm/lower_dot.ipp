#include <algorithm>

#include "kiln/backend/hip/impl/expect_scratch.hpp"
#include "kiln/backend/hip/impl/gemm/blas.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/separate_epilogue.hpp"
#include "kiln/backend/hip/impl/gemm/stored_form.hpp"
#include "kiln/backend/hip/impl/gemm/with_epilogue.hpp"
#include "kiln/backend/hip/impl/scratch_tensors.hpp"
#include "kiln/backend/hip/lower.hpp"
#include "kiln/op/quant/float8_dot.hpp"

namespace kiln::hip {
namespace {

// Weights that stay as they are stored in blocks: products of few rows unpack them in registers, others read what a
// kernel before them wrote out.
struct kept_weights {
  stored_form form;
  small_vector<std::size_t> inputs;  // data, scales and perhaps zero points
  std::int64_t depth = 0, columns = 0;
};

// Whether the right factor is a matrix of rows along the depth, by the index map: the same for all of a batch.
bool reads_rows(const operation& op, const shape& a, const shape& b) {
  const shape of[] = {a, b};
  const auto maps = op.maps(of);
  return maps && maps->rhs.size() == 2 && maps->rhs[1].coefficient[maps->extents.size() - 1] != 0;
}

class dot_kernel final : public gpu_kernel {
 public:
  dot_kernel(fused_contraction from, std::optional<kept_weights> kept, const kernel_request& r,
             const context_pointer& where)
      : gpu_kernel(where,
                   std::string(kept ? "dot of blocks" : from.body.op.name()) + (from.epilogue ? "+epilogue" : "")),
        body_(std::move(from.body)),
        epilogue_(std::move(from.epilogue)),
        kept_(std::move(kept)),
        type_(r.inputs[body_.operands[0]].type),
        constant_(r.constants[body_.operands[1]] != nullptr),
        of_rows_(!kept_ && reads_rows(body_.op, r.inputs[body_.operands[0]], r.inputs[body_.operands[1]])) {}
  stride_support input_strides(std::size_t i) const override {
    const bool of_weights = kept_ && std::find(kept_->inputs.begin(), kept_->inputs.end(), i) != kept_->inputs.end();
    return of_weights ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override { built_for(in, out); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    const auto made = built_for(in, out);
    return made->wide_bytes + (made->blas ? made->blas->scratch_bytes() : made->plan.scratch_bytes);
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    auto made = built_for(l.in, l.out);
    if (made->unpacks) return run_few_rows(*made, l);
    expect_scratch(l, made->wide_bytes + (made->blas ? 0 : made->plan.scratch_bytes), name_);
    const std::span<std::byte> scratch = l.scratch.subspan(made->wide_bytes);
    const std::byte* right = l.in[body_.operands[1]].data;
    if (made->widen) {
      right = l.scratch.data();
      made->widen->launch(*l.queue, made->widening_grid, {widening::threads}, 0, weights(l), right,
                          static_cast<int>(kept_->columns), static_cast<int>(kept_->depth));
    }
    if (made->blas && !made->blas->run(*l.queue, scratch, l.in[body_.operands[0]].data, right, l.out[0].data)) {
      made = built_for(l.in, l.out, false);
      expect_scratch(l, made->wide_bytes + made->plan.scratch_bytes, name_);
    }
    if (made->blas) {
      std::vector<const void*> extra;
      for (std::size_t i : body_.epilogue_inputs) extra.push_back(l.in[i].data);
      if (made->epilogue) made->epilogue.run(*l.queue, l.out[0].data, extra);
      return;
    }
    const tensor factor = right_factor(l.in, l.out[0], right);
    const std::vector<const tensor*> all = operands(l.in, l.out[0], factor);
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
      run_gemm(made->plan, *made->run, *l.queue, scratch, address[0], address[1], const_cast<void*>(address.back()),
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
    bool unpacks = false;  // weights that are kept as they are stored; else they are written out first
    std::size_t wide_bytes = 0;
    std::shared_ptr<const function> widen;
    extent3 widening_grid;
  };

  // a, b, the epilogue's operands, the result
  std::vector<const tensor*> operands(std::span<const tensor> in, const tensor& out, const tensor& right) const {
    std::vector<const tensor*> all = {&in[body_.operands[0]], &right};
    for (std::size_t i : body_.epilogue_inputs) all.push_back(&in[i]);
    all.push_back(&out);
    return all;
  }

  // The right factor of a result at `data`: the operand, or one matrix for the whole batch, kept weights written out,
  // which have each column's depth contiguous, or rows that are columns.
  tensor right_factor(std::span<const tensor> in, const tensor& out, const std::byte* data) const {
    tensor t = in[body_.operands[1]];
    if (!kept_ && !of_rows_) return t;
    const std::size_t last = out.rank() - 1;
    const std::int64_t depth = kept_ ? kept_->depth : t.lens[1], column = kept_ ? depth : t.strides[0],
                       along = kept_ ? 1 : t.strides[1];
    t.data = const_cast<std::byte*>(data);
    t.type = type_;
    t.lens = out.lens;
    t.strides = ints(out.rank(), 0);
    t.lens[last - 1] = depth, t.strides[last - 1] = along, t.strides[last] = column;
    return t;
  }
  gpu::stored_argument weights(const launch& l) const {
    gpu::stored_argument to = kept_->form.value;
    to.data = l.in[kept_->inputs[0]].data;
    to.scales = l.in[kept_->inputs[1]].data;
    if (kept_->inputs.size() > 2) to.zeros = l.in[kept_->inputs[2]].data;
    return to;
  }
  void run_few_rows(const built& made, const launch& l) const {
    matrix_argument a = std::get<matrix_argument>(made.plan.a.value);
    a.base = l.in[body_.operands[0]].data;
    std::vector<std::byte> result = made.plan.result;
    std::vector<const void*> extra;
    for (std::size_t i : body_.epilogue_inputs) extra.push_back(l.in[i].data);
    put_addresses(result, l.out[0].data, extra);
    gpu::stored_argument b = weights(l);
    gemm_sizes sizes = made.plan.sizes;
    void* values[] = {&a, &b, result.data(), &sizes, nullptr};
    made.run->give(*l.queue, made.plan.grid, made.plan.block, made.plan.shared_bytes, values);
  }

  // `library`: the platform's may compute it.
  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out,
                                         bool library = true) const {
    return (library ? built_ : built_here_).get(key_of(in, out), [&] {
      built made;
      if (out[0].elements() != 0) {
        const tensor right = right_factor(in, out[0], kept_ ? nullptr : in[body_.operands[1]].data);
        gemm_problem p = problem(operands(in, out[0], right), made.outer, made.last_entries);
        const row_program* const after = epilogue_ ? &*epilogue_ : nullptr;
        made.unpacks = kept_ && made.outer.extent.empty() && has_few_rows(p, where().arch());
        if (made.unpacks) {
          const stored_form& form = kept_->form;
          made.plan = plan_few_rows(p, after, stored_tile(p, form, where().arch()), where().arch(), form.of_few_rows,
                                    form.scale_words);
          made.run = where().build(made.plan.what);
          made.plan.what.text.clear();
          return made;
        }
        if (kept_) {
          p.constant_b = false;  // a kernel writes it
          const widening how = plan_widening(kept_->form, p.type, kept_->columns, kept_->depth);
          made.widen = where().build(how.what);
          made.widening_grid = how.grid;
          made.wide_bytes = scratch_room(kept_->columns * kept_->depth, p.type);
        }
        if (library && made.outer.extent.empty() && blas_gemm::is_asked(p, after, where().arch()))
          made.blas = blas_gemm::find(p, where());
        if (made.blas) {
          if (epilogue_) made.epilogue = separate_epilogue(*epilogue_, body_, in, out, where());
          return made;
        }
        made.plan = plan_gemm(p, after, where());
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
      return alignment_after(alignment_of(all[k]->data), size_of(all[k]->type), outer.step[k]);
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
  std::optional<kept_weights> kept_;
  dtype type_;
  bool constant_ = false, of_rows_ = false;
  by_sizes<built> built_, built_here_;
};

// A product whose weights kernels read as they are stored.
std::unique_ptr<kernel> lower_stored(const kernel_request& r, const context_pointer& where) {
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    auto found = lower::find_stored_product(r.whole, r.instruction, t);
    if (!found) continue;
    // kernels read weights before the steps that come before them have ended, and one of these would copy others
    for (const std::size_t k : found->inputs())
      if (!r.constants[k] || !r.constant_layouts[k].dense()) return nullptr;
    const module_graph& m = r.whole.module(r.instruction.op.get_if<op::fused>()->body);
    auto form = find_stored_form(found->weights, m);
    if (!form) return nullptr;
    center(*form, found->weights, *r.constants[found->operands[1]]);
    kept_weights kept{std::move(*form), {}, found->weights.depth, found->weights.columns};
    for (const std::size_t k : found->inputs()) kept.inputs.push_back(k);
    auto from = with_epilogue(std::move(found->body));
    return from ? std::make_unique<dot_kernel>(std::move(*from), std::move(kept), r, where) : nullptr;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<kernel> lower_dot(const kernel_request& r, const context_pointer& where) {
  auto from = read_contraction(r);
  if (!from) return lower_stored(r, where);
  if (!from->body.op.is<op::dot>() && !from->body.op.is<op::float8_dot>()) return nullptr;
  return std::make_unique<dot_kernel>(std::move(*from), std::nullopt, r, where);
}

}  // namespace kiln::hip
