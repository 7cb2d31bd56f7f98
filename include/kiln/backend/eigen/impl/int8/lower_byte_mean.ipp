#include <algorithm>

#include "kiln/backend/eigen/impl/int8/dequantized_byte.hpp"
#include "kiln/backend/eigen/impl/int8/requantization_form.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using namespace integer_epilogues;

// A row's mean: y = (sum - row * zero) * scale + bias, then the byte nearest to it.
struct byte_mean {
  std::int64_t row = 1;
  double zero = 0, scale = 1, bias = 0;
  kernels::byte_rounding to;
  std::int32_t shift = 0;

  std::byte of(std::int64_t sum) const {
    const double centered = static_cast<double>(sum) - static_cast<double>(row) * zero;
    const auto y = static_cast<float>(centered * scale + bias);
    const float whole = std::clamp(kiln::round(y / to.scale), to.low, to.high);
    return static_cast<std::byte>(static_cast<std::int32_t>(whole) + shift);
  }
};

class byte_mean_kernel final : public kernel {
 public:
  byte_mean_kernel(const byte_mean& mean, bool is_signed) : mean_(mean), is_signed_(is_signed) {}
  std::string name() const override { return "mean (bytes)"; }
  void run(const launch& l) const override {
    const std::int64_t rows = l.out[0].elements(), row = mean_.row;
    const std::int64_t each = std::clamp<std::int64_t>(64 * 1024 / row, 1, std::max<std::int64_t>(1, rows));
    const auto part = [&](std::int64_t task, unsigned) {
      for (std::int64_t r = task * each; r < std::min(rows, (task + 1) * each); ++r)
        l.out[0].data[r] = mean_.of(kiln_eigen_integers()->sum_bytes(l.in[0].data + r * row, is_signed_, row));
    };
    if (rows <= each) return part(0, 0);
    l.pool->parallel_for((rows + each - 1) / each, part);
  }

 private:
  byte_mean mean_;
  bool is_signed_;
};

// Whether a reduction folds the last dims, of constant extents; how many elements that are.
std::optional<std::int64_t> folded_row(const op::reduce_mean& op, const shape& x) {
  std::int64_t row = 1;
  std::size_t folds = 0;
  for (std::size_t d = x.rank(); d-- > 0;) {
    const auto axis = static_cast<std::int64_t>(d), rank = static_cast<std::int64_t>(x.rank());
    const bool folded = op.axes.empty() || std::any_of(op.axes.begin(), op.axes.end(),
                                                       [&](std::int64_t a) { return (a < 0 ? a + rank : a) == axis; });
    if (!folded) break;
    if (!x.lens[d].is_constant()) return std::nullopt;
    row *= x.lens[d].value();
    ++folds;
  }
  constexpr std::int64_t most = 1 << 22;
  const bool all = op.axes.empty() ? folds == x.rank() : folds == op.axes.size();
  return all && folds > 0 && row > 0 && row <= most ? std::optional(row) : std::nullopt;
}

}  // namespace

std::unique_ptr<kernel> lower_byte_mean(const kernel_request& r) {
  const auto* fused = r.instruction.op.get_if<op::fused>();
  if (!fused || r.inputs.size() != 1 || r.instruction.results.size() != 1) return nullptr;
  const dtype from = r.inputs[0].type, made = r.instruction.results[0].type;
  if ((from != dtype::u8 && from != dtype::i8) || (made != dtype::u8 && made != dtype::i8)) return nullptr;
  const module_graph& body = r.whole.module(fused->body);
  std::uint32_t parameter = 0;
  while (parameter < body.size() && body[parameter].kind != instruction_kind::parameter) ++parameter;
  const auto start = parameter < body.size() ? dequantized_byte::of(body, parameter) : std::nullopt;
  if (!start) return nullptr;
  byte_mean mean;
  mean.zero = start->zero;
  std::uint32_t at = start->at;
  auto user = only_user(body, at);
  if (user && body[*user].op.is<op::mul>()) {
    const auto& in = body[*user].inputs;
    const auto factor = repeated_constant(body, in[in[0].instruction == at ? 1 : 0]);
    const auto scale = factor ? uniform_value(*factor) : std::nullopt;
    if (!scale || !(std::abs(*scale) < 0x1p30)) return nullptr;
    mean.scale = *scale;
    at = *user;
    user = only_user(body, at);
  }
  if (!user || !body[*user].op.is<op::reduce_mean>()) return nullptr;
  const auto row = folded_row(*body[*user].op.get_if<op::reduce_mean>(), body.shape_of({at, 0}));
  if (!row) return nullptr;
  mean.row = *row;
  lower::contraction_body<module_graph> as_epilogue;
  as_epilogue.epilogue = body;
  const auto form = requantization_finder(as_epilogue, r, 0, 1).find(*user);
  using how = kernels::requantization;
  if (!form || form->how.result_kind == how::kind::floats || form->how.rounds || form->addend != none ||
      form->how.activation != how::curve::none || form->how.rectifies || form->scale_input != none)
    return nullptr;
  mean.scale *= static_cast<double>(form->scale[0]) / static_cast<double>(*row);
  if (!form->bias.empty()) mean.bias = static_cast<double>(form->bias[0]);
  mean.to = form->how.last;
  mean.shift = form->how.zero;
  return std::make_unique<byte_mean_kernel>(mean, from == dtype::i8);
}

}  // namespace kiln::eigen
