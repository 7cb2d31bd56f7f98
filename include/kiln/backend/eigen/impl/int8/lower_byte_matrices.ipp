#include "kiln/backend/eigen/impl/int8/byte_operands.hpp"
#include "kiln/backend/eigen/impl/int8/byte_products.hpp"
#include "kiln/backend/eigen/impl/int8/requantization_form.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using namespace integer_epilogues;

class byte_matrices_kernel final : public kernel {
 public:
  byte_matrices_kernel(lower::contraction_body<module_graph> body, const kernel_request& r) : body_(std::move(body)) {
    if (!body_.has_epilogue()) return;
    form_ = find_form(body_);
    const shape& made = r.instruction.results[0];
    if (form_ && form_->addends.empty() && made.lens.back().is_constant())
      requantization_ =
          requantization_finder(body_, r, made.rank() - 1, made.lens.back().value()).find(form_->converted);
    if (requantization_ && requantization_->scale_input != none) requantization_.reset();
    if (!form_ || !form_->addends.empty()) whole_ = std::make_unique<tile_program>(body_.epilogue);
  }

  std::string name() const override {
    return std::string("integer dot of two operands") +
           (!body_.has_epilogue()                              ? ""
            : !requantization_                                 ? "+epilogue"
            : requantization_->how.result_kind == kind::floats ? "+rescale"
                                                               : "+requantize") +
           (kiln_eigen_integers()->reads_bytes ? " (bytes)" : " (words)");
  }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override {
    return body_.has_epilogue() && !whole_ ? stride_support::rows : stride_support::dense;
  }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    std::size_t n = places(*this, in, out[0], threads).bytes;
    if (whole_) n += rows_scratch_bytes(*whole_, whole_operands(in, sums_at(nullptr, out[0])), out, threads);
    return n;
  }

  double estimated_seconds(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const tensor &a = in[body_.operands[0]], &b = in[body_.operands[1]];
    const auto results = static_cast<double>(out[0].elements());
    const double bytes = static_cast<double>(a.elements()) + static_cast<double>(b.elements()) +
                         results * static_cast<double>(size_of(out[0].type));
    return byte_product_seconds(out[0].lens[out[0].rank() - 2], 2 * results * static_cast<double>(a.lens[a.rank() - 1]),
                                bytes, threads);
  }
  void run(const launch& l) const override {
    const integer_table& isa = *kiln_eigen_integers();
    const tensor& out = l.out[0];
    if (out.elements() == 0) return;
    const places at(*this, l.in, out, l.pool->size());
    std::byte* const scratch = l.scratch.data();
    auto* const own = reinterpret_cast<std::int32_t*>(scratch);
    kernels::byte_matrices p = at.problem;
    const tensor &a = l.in[body_.operands[0]], &b = l.in[body_.operands[1]];
    const auto addresses = [&](std::size_t to, const tensor& t) {
      auto* const list = reinterpret_cast<std::byte**>(scratch + to);
      find_matrices(t, out, list);
      return list;
    };
    p.a = addresses(at.left, a);
    p.b = addresses(at.right, b);
    if (at.requantizes) {
      kernels::requantization how = requantization_->bound(nullptr);
      how.result_row = out.strides[out.rank() - 2];
      const std::byte* const* addends = nullptr;
      if (requantization_->addend != none) {
        const tensor& t = l.in[requantization_->addend];
        how.addend_row = t.strides[t.rank() - 2];
        addends = addresses(at.addends, t);
      }
      return isa.requantize_matrices(*l.pool, p, own, how, addresses(at.results, out), addends);
    }
    if (form_ && !whole_) {
      const float_epilogue epilogue(*form_, l.in, out);
      return isa.multiply_matrices(
          *l.pool, p, own,
          {[](void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
              std::ptrdiff_t row) { static_cast<const float_epilogue*>(self)->apply(row0, rows, col0, cols, c, row); },
           const_cast<float_epilogue*>(&epilogue)});
    }
    const tensor sums = whole_ ? sums_at(scratch + at.sums, out) : out;
    isa.multiply_matrices(*l.pool, p, own, {nullptr, nullptr, sums.as<std::int32_t>(), p.n});
    if (whole_) run_rows(*whole_, {whole_operands(l.in, sums), l.out, l.scratch.subspan(at.bytes), l.pool, nullptr});
  }

 private:
  using kind = kernels::requantization::kind;

  static tensor sums_at(std::byte* memory, const tensor& out) {
    return {memory, dtype::i32, out.lens, row_major(out.lens)};
  }
  inline_vector<tensor, 40> whole_operands(std::span<const tensor> in, const tensor& sums) const {
    inline_vector<tensor, 40> operands;
    operands.push_back(sums);
    for (const std::size_t i : body_.epilogue_inputs) operands.push_back(in[i]);
    return operands;
  }
  // What a run needs beside its operands, by its sizes: the workers' memory comes first in the scratch memory.
  struct places {
    kernels::byte_matrices problem;
    bool requantizes = false;
    std::size_t left = 0, right = 0, results = 0, addends = 0, sums = 0, bytes = 0;

    places(const byte_matrices_kernel& k, std::span<const tensor> in, const tensor& out, unsigned threads) {
      const tensor &a = in[k.body_.operands[0]], &b = in[k.body_.operands[1]];
      problem = problem_of(*k.body_.op.get_if<op::integer_dot>(), a, b, out);
      const auto take = [&](std::int64_t n) {
        const std::size_t at = bytes;
        bytes += (static_cast<std::size_t>(n) + 63) / 64 * 64;
        return at;
      };
      take(kiln_eigen_integers()->matrices_scratch(problem, threads) * 4);
      const auto pointers = problem.batch * static_cast<std::int64_t>(sizeof(std::byte*));
      left = take(pointers), right = take(pointers);
      if (k.requantization_ && has_rows(out)) {
        const std::size_t i = k.requantization_->addend;
        requantizes = i == none || (in[i].lens == out.lens && has_rows(in[i]));
        results = take(pointers), addends = take(pointers);
      }
      if (k.whole_) sums = take(out.elements() * 4);
    }
  };

  lower::contraction_body<module_graph> body_;
  std::optional<integer_form> form_;
  std::optional<requantization_form> requantization_;
  std::unique_ptr<tile_program> whole_;  // the epilogue over whole sums, where it has no such form
};

}  // namespace

std::unique_ptr<kernel> lower_byte_matrices(const kernel_request& r) {
  auto body = lower::split_contraction(r.whole, r.instruction);
  if (!body || !body->op.is<op::integer_dot>() || r.instruction.results.size() != 1) return nullptr;
  return std::make_unique<byte_matrices_kernel>(std::move(*body), r);
}

}  // namespace kiln::eigen
