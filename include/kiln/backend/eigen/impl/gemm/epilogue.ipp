#include "kiln/backend/eigen/epilogue.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/core/argument.hpp"

namespace kiln::eigen {

namespace {
constexpr std::size_t activation_stack_bytes = 24 * 1024;
}

std::optional<fused_contraction> read_contraction(const kernel_request& request,
                                                  const std::function<bool(std::size_t)>& is_constant) {
  std::optional<channel_prologue_form> prologue;
  const auto gates = [&](std::size_t k) { return is_gate(request.graph, request.instruction.inputs[k]); };
  const auto body = lower::split_contraction(request.whole, request.instruction,
                                             [&](const module_graph& m, value_id end) -> std::optional<std::size_t> {
                                               if (is_constant)
                                                 prologue = find_channel_prologue(m, end, is_constant, gates);
                                               return prologue ? std::optional(prologue->data) : std::nullopt;
                                             });
  if (!body) return std::nullopt;
  fused_contraction out = compiled_contraction(*body);
  out.prologue = prologue;
  return out;
}

fused_contraction compiled_contraction(const lower::contraction_body<module_graph>& body) {
  fused_contraction out{body.op, {body.operands[0], body.operands[1]}, {}, body.epilogue_inputs};
  if (!body.has_epilogue()) return out;
  out.epilogue = std::make_unique<tile_program>(body.epilogue);
  out.affine = find_affine(body.epilogue, body.op.is<op::dot>());
  if (out.affine && out.affine->last != body.epilogue.outputs[0].instruction) {
    const module_graph rest = activation_of(body.epilogue, *out.affine);
    out.affine->then = compiled_activation(rest);
    if (out.affine->then) return out;
    out.activation = std::make_unique<tile_program>(rest);
    if (out.activation->scratch_bytes(fused_contraction::activation_elements) > activation_stack_bytes)
      out.affine.reset();
  }
  return out;
}

bool fused_contraction::bind(std::span<const tensor> inputs, const tensor& out, std::size_t inner,
                             kernels::affine_epilogue<float>& to, bool nhwc) const {
  constexpr std::size_t most = 4;  // as many as the form that kernels know has
  if (!affine || out.type != dtype::f32 || affine->addends.size() > most) return false;
  const tensor* addends[most];
  std::size_t count = 0;
  for (std::size_t i : affine->addends) addends[count++] = &inputs[epilogue_inputs[i]];
  if (bias.empty()) return bind_affine(*affine, {addends, count}, out, inner, nhwc, to);
  tensor sum = *addends[0];
  sum.data = reinterpret_cast<std::byte*>(const_cast<float*>(bias.data()));
  addends[0] = &sum;
  return bind_affine(*affine, {addends, count}, out, inner, nhwc, to);
}

void fused_contraction::sum_biases(const kernel_request& request, std::size_t dim) {
  if (!affine) return;
  small_vector<std::size_t> biases, others;
  for (std::size_t a : affine->addends) {
    const std::size_t i = epilogue_inputs[a];
    const dims& lens = request.inputs[i].lens;
    bool repeats = request.constants[i] && request.inputs[i].type == dtype::f32 && dim < lens.size() &&
                   lens[dim].is_constant() && request.constant_layouts[i].offset.is_constant();
    for (std::size_t d = 0; d < lens.size() && repeats; ++d)
      repeats = request.constant_layouts[i].strides[d] == dimension(d == dim ? 1 : 0) ||
                (d != dim && lens[d] == dimension(1));
    (repeats ? biases : others).push_back(a);
  }
  if (biases.size() < 2) return;
  std::vector<float> sum(static_cast<std::size_t>(request.inputs[epilogue_inputs[biases[0]]].lens[dim].value()), 0.0F),
      greatest = sum;
  for (std::size_t a : biases) {
    const std::size_t i = epilogue_inputs[a];
    const argument aligned(*request.constants[i]);
    const float* const at = aligned.as<float>().data() + request.constant_layouts[i].offset.value();
    for (std::size_t k = 0; k < sum.size(); ++k) {
      sum[k] += at[k];
      greatest[k] = std::max(greatest[k], std::fabs(at[k]));
    }
  }
  // addends that round on purpose are added one by one
  for (std::size_t k = 0; k < sum.size(); ++k)
    if (!(greatest[k] <= 0x1p16F) || (greatest[k] >= 0x1p10F && std::fabs(sum[k]) < greatest[k] / 2)) return;
  bias.assign(sum.begin(), sum.end());
  affine->addends = {};
  affine->addends.push_back(biases[0]);
  for (std::size_t a : others) affine->addends.push_back(a);
}

namespace {

// Compiled loops go over rows where they lie: to copy them together took longer than GELU itself.
bool ran_over_rows(const tile_program& p, std::int64_t rows, std::int64_t cols, float* c, std::ptrdiff_t c_row) {
  if (!p.blocks() || !p.blocks()->compiled()) return false;
  const block_program& blocks = *p.blocks();
  const std::int64_t most = kiln_eigen_isa()->blocks()->lanes[1];
  alignas(64) std::byte scratch[activation_stack_bytes];
  if (blocks.scratch_bytes(0, most) > sizeof scratch) return false;
  block_cursor cursor(blocks, scratch, 0, most);
  const auto step = static_cast<std::int64_t>(c_row * static_cast<std::ptrdiff_t>(sizeof(float)));
  const std::int64_t steps[] = {step, step};
  for (std::int64_t first = 0; first < rows; first += most) {
    auto* const at = reinterpret_cast<std::byte*>(c + first * c_row);
    const tile_program::stream streams[] = {{at, 1}, {at, 1}};
    cursor.batch(streams, steps, std::min(most, rows - first), cols, false);
  }
  return true;
}

}  // namespace

void fused_contraction::apply_activation(std::int64_t rows, std::int64_t cols, float* c, std::ptrdiff_t c_row) const {
  if (ran_over_rows(*activation, rows, cols, c, c_row)) return;
  alignas(64) std::byte scratch[activation_stack_bytes];
  alignas(64) float together[activation_elements];
  tile_program::cursor cursor(*activation, scratch, activation_elements);
  const auto run = [&](float* at, std::int64_t count) {
    cursor.parameter(0) = cursor.result(0) = {reinterpret_cast<std::byte*>(at), 1};
    cursor.run(0, 0, count);
  };
  const std::int64_t each = activation_elements / std::max<std::int64_t>(cols, 1);
  if (each < 2) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t from = 0; from < cols; from += activation_elements)
        run(c + r * c_row + from, std::min(activation_elements, cols - from));
    return;
  }
  for (std::int64_t first = 0; first < rows; first += each) {
    const std::int64_t count = std::min(each, rows - first);
    for (std::int64_t r = 0; r < count; ++r) std::copy_n(c + (first + r) * c_row, cols, together + r * cols);
    run(together, count * cols);
    for (std::int64_t r = 0; r < count; ++r) std::copy_n(together + r * cols, cols, c + (first + r) * c_row);
  }
}

std::optional<operand_rows> operand_rows::of(const tensor& t, const tensor& out, std::size_t inner) {
  const std::size_t rank = out.rank(), outer = rank - inner;
  operand_rows o;
  o.data = t.data;
  o.width = static_cast<std::int64_t>(size_of(t.type));
  const auto step_of = [&](std::size_t d) { return t.lens[d] == 1 ? 0 : t.strides[d]; };
  for (std::size_t d = 0; d < outer; ++d) o.steps.push_back(step_of(d));
  // the columns' dims join into one when each step is the next one's times its extent
  std::int64_t joined = 1;
  for (std::size_t d = rank; d-- > outer; joined *= out.lens[d]) {
    if (out.lens[d] == 1) continue;
    if (joined == 1)
      o.step = step_of(d);
    else if (step_of(d) != o.step * joined)
      return std::nullopt;
  }
  return o;
}

tiled_epilogue::tiled_epilogue(const fused_contraction& body, std::span<const tensor> inputs, const tensor& out,
                               std::size_t inner)
    : epilogue_(body.epilogue.get()) {
  for (std::size_t d = 0; d < out.rank() - inner; ++d) row_lens_.push_back(out.lens[d]);
  if (!epilogue_) return;
  fits_ = out.type == dtype::f32 && epilogue_->scratch_bytes(most_columns) <= stack_bytes;
  for (std::size_t i : body.epilogue_inputs) {
    const auto o = operand_rows::of(inputs[i], out, inner);
    fits_ = fits_ && o;
    if (fits_) operands_.push_back(*o);
  }
}

void tiled_epilogue::apply(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
                           std::ptrdiff_t c_row) const {
  alignas(64) std::byte scratch[stack_bytes];
  tile_program::cursor cursor(*epilogue_, scratch, std::min(most_columns, cols));
  ints at = row_lens_;
  std::int64_t rest = row0;
  for (std::size_t d = at.size(); d-- > 0; rest /= row_lens_[d]) at[d] = rest % row_lens_[d];
  for (std::int64_t r = 0; r < rows; ++r, next_index(at, row_lens_)) {
    for (std::size_t k = 0; k < operands_.size(); ++k)
      cursor.parameter(k + 1) = {operands_[k].at(at, col0), operands_[k].step};
    for (std::int64_t from = 0; from < cols; from += most_columns) {
      const std::int64_t count = std::min(most_columns, cols - from);
      auto* at_c = reinterpret_cast<std::byte*>(c + r * c_row + from);
      cursor.parameter(0) = {at_c, 1};
      cursor.result(0) = {at_c, 1};
      cursor.run(0, 0, count);
      for (std::size_t k = 0; k < operands_.size(); ++k)
        cursor.parameter(k + 1).at += count * operands_[k].step * operands_[k].width;
    }
  }
}

namespace {
inline_vector<tensor, 40> epilogue_operands(const fused_contraction& body, std::span<const tensor> inputs,
                                            const tensor& product) {
  inline_vector<tensor, 40> in;
  in.push_back(product);
  for (std::size_t i : body.epilogue_inputs) in.push_back(inputs[i]);
  return in;
}
}  // namespace

void run_epilogue(const fused_contraction& body, std::span<const tensor> inputs, const tensor& product,
                  const tensor& out, std::span<std::byte> scratch, thread_pool& pool) {
  const auto in = epilogue_operands(body, inputs, product);
  run_rows(*body.epilogue, {in, std::span(&out, 1), scratch, &pool, nullptr});
}

std::size_t epilogue_scratch_bytes(const fused_contraction& body, std::span<const tensor> inputs, const tensor& product,
                                   const tensor& out, unsigned threads) {
  return rows_scratch_bytes(*body.epilogue, epilogue_operands(body, inputs, product), std::span(&out, 1), threads);
}

tensor product_place(const tensor& out, std::byte* scratch) {
  if (out.type == dtype::f32) return out;
  tensor t{scratch, dtype::f32, out.lens, row_major(out.lens)};
  if (image_layout_of(out).nhwc) t.strides = lower::nhwc_strides(t.lens);
  return t;
}

std::size_t product_bytes(const tensor& out) {
  return out.type == dtype::f32 ? 0 : (static_cast<std::size_t>(out.elements()) * sizeof(float) + 63) / 64 * 64;
}

}  // namespace kiln::eigen
