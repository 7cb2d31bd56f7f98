#include <cmath>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/reductions.hpp"
#include "kiln/op/control/fused.hpp"
#include "kiln/op/derive.hpp"
#include "kiln/op/reduce.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using kernels::reduction_kind;

// What becomes of a folded element.
enum class ending : std::uint8_t { none, mean, root };

struct reduction_form {
  reduction_kind kind;
  ending end = ending::none;
  const ints* axes;
};

std::optional<reduction_form> form_of(const operation& op) {
  if (const auto* o = op.get_if<op::reduce_sum>()) return {{reduction_kind::sum, ending::none, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_mean>()) return {{reduction_kind::sum, ending::mean, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_l1>()) return {{reduction_kind::sum_of_magnitudes, ending::none, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_l2>()) return {{reduction_kind::sum_of_squares, ending::root, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_sum_square>())
    return {{reduction_kind::sum_of_squares, ending::none, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_prod>()) return {{reduction_kind::product, ending::none, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_max>()) return {{reduction_kind::maximum, ending::none, &o->axes}};
  if (const auto* o = op.get_if<op::reduce_min>()) return {{reduction_kind::minimum, ending::none, &o->axes}};
  return std::nullopt;
}

// Dims that are folded, neighbors joined, from the last to the first: each step leaves a dense tensor without them.
std::vector<kernels::reduction_problem> steps_of(const ints& lens, const inline_vector<bool, max_rank>& folded,
                                                 reduction_kind kind) {
  std::vector<kernels::reduction_problem> steps;
  std::int64_t inner = 1;  // elements that are left of the dims after d
  for (std::size_t d = lens.size(); d-- > 0;) {
    if (!folded[d]) {
      inner *= lens[d];
      continue;
    }
    kernels::reduction_problem p;
    p.kind = kind;
    p.inner = inner;
    p.extent = lens[d];
    for (; d > 0 && folded[d - 1]; --d) p.extent *= lens[d - 1];
    for (std::size_t k = 0; k < d; ++k) p.outer *= lens[k];
    steps.push_back(p);
    if (kind == reduction_kind::sum_of_magnitudes || kind == reduction_kind::sum_of_squares) kind = reduction_kind::sum;
  }
  return steps;
}

template <class T> void take_roots(const tensor& of, std::int64_t n) {
  T* const x = of.as<T>();
  for (std::int64_t i = 0; i < n; ++i) x[i] = std::sqrt(x[i]);
}

class reduction_kernel final : public kernel {
 public:
  /// `rows` folds views, which it reads as they lie.
  reduction_kernel(const reduction_form& form, dtype type, std::string name, std::unique_ptr<kernel> rows)
      : kind_(form.kind),
        end_(form.end),
        axes_(*form.axes),
        from_(type),
        to_(sum_type(form, type)),
        name_(std::move(name)),
        rows_(std::move(rows)) {}
  // Means and roots of integers are those of sums that don't wrap.
  static dtype sum_type(const reduction_form& form, dtype type) {
    return form.end != ending::none && is_integer(type) ? dtype::i64 : type;
  }
  std::string name() const override { return name_; }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    if (!in[0].dense()) return rows_->scratch_bytes(in, out, threads);
    std::size_t all = 0;
    for (const auto& p : steps(in[0].lens)) {
      all += in_lines(static_cast<std::size_t>(p.scratch(threads)) * size_of(to_));
      all += in_lines(static_cast<std::size_t>(p.outer * p.inner) * size_of(to_));
    }
    return all;
  }
  void run(const launch& l) const override {
    const tensor &x = l.in[0], &y = l.out[0];
    if (!x.dense()) return rows_->run(l);
    const std::int64_t made = y.elements();
    if (made == 0) return;
    std::byte* free = l.scratch.data();
    const auto take = [&](std::int64_t elements) {
      std::byte* const at = free;
      free += in_lines(static_cast<std::size_t>(elements) * size_of(to_));
      return at;
    };
    const void* from = x.data;
    dtype type = from_;
    const auto all = steps(x.lens);
    std::int64_t count = 1;
    const auto folded = reduced_dims(axes_, x.rank()).value();
    for (std::size_t d = 0; d < x.rank(); ++d) count *= folded[d] ? x.lens[d] : 1;
    for (std::size_t k = 0; k < all.size(); ++k) {
      kernels::reduction_problem p = all[k];
      if (end_ == ending::mean && k + 1 == all.size()) p.divisor = count;
      p.in = from;
      p.out = k + 1 == all.size() && to_ == from_ ? y.data : take(p.outer * p.inner);
      kiln_eigen_reductions()->reduce(*l.pool, p, type, to_, take(p.scratch(l.pool->size())));
      from = p.out;
      type = to_;
    }
    if (to_ == dtype::i64 && end_ != ending::none) return store_integers(from, y, count);
    if (end_ != ending::root) return;
    from_ == dtype::f32 ? take_roots<float>(y, made) : take_roots<double>(y, made);
  }

 private:
  static std::size_t in_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::vector<kernels::reduction_problem> steps(const ints& lens) const {
    return steps_of(lens, reduced_dims(axes_, lens.size()).value(), kind_);
  }
  void store_integers(const void* sums, const tensor& y, std::int64_t count) const {
    const auto* const from = static_cast<const std::int64_t*>(sums);
    for (std::int64_t i = 0, n = y.elements(); i < n; ++i) {
      const std::int64_t made =
          end_ == ending::mean ? detail::quotient(from[i], count) : op::reduce_l2{}.finish(from[i], count);
      encode(y.type, &made, y.data + static_cast<std::size_t>(i) * size_of(y.type), 1);
    }
  }

  reduction_kind kind_;
  ending end_;
  ints axes_;
  dtype from_, to_;
  std::string name_;
  std::unique_ptr<kernel> rows_;
};

}  // namespace

// The reduction that an instruction is, alone or as the only op of a fused body.
static const operation* single_reduction(const kernel_request& r) {
  const operation* op = &r.instruction.op;
  if (const auto* fused = op->get_if<op::fused>()) {
    const module_graph& body = r.whole.module(fused->body);
    if (body.size() != 2 || body.outputs.size() != 1 || body.outputs[0].instruction != 1 ||
        body[0].kind != instruction_kind::parameter || body[1].kind != instruction_kind::op)
      return nullptr;
    op = &body[1].op;
  }
  return op->kind() == op_kind::reduction && r.inputs.size() == 1 && r.inputs[0].rank() > 0 ? op : nullptr;
}

// Whether these are rows of some vectors of floats, of which the kernel of rows folds several at once.
static bool fold_side_by_side(const reduction_form& form, const shape& x, const inline_vector<bool, max_rank>& folded) {
  if (x.type != dtype::f32 || form.end == ending::root ||
      (form.kind != reduction_kind::sum && form.kind != reduction_kind::maximum &&
       form.kind != reduction_kind::minimum))
    return false;
  dimension row = 1;
  std::size_t d = x.rank();
  for (; d > 0 && folded[d - 1]; --d) row *= x.lens[d - 1];
  for (std::size_t k = 0; k < d; ++k)
    if (folded[k]) return false;
  const std::int64_t lanes = kiln_eigen_isa()->vector_bytes / static_cast<std::int64_t>(sizeof(float));
  return row.is_constant() && row.value() >= lanes && row.value() < 512;
}

std::unique_ptr<kernel> lower_reduction(const kernel_request& r) {
  const operation* const op = single_reduction(r);
  if (!op) return nullptr;
  const auto form = form_of(*op);
  const dtype type = r.inputs[0].type;
  if (!form) return nullptr;
  if (!kiln_eigen_reductions()->serves(form->kind, type, reduction_kernel::sum_type(*form, type))) return nullptr;
  const auto folded = reduced_dims(*form->axes, r.inputs[0].rank());
  bool any = false;
  for (const bool f : *folded) any = any || f;
  if (!any || fold_side_by_side(*form, r.inputs[0], *folded)) return nullptr;
  auto rows = lower_rows(r);
  if (!rows) return nullptr;
  return std::make_unique<reduction_kernel>(*form, type, std::string(op->name()), std::move(rows));
}

}  // namespace kiln::eigen
