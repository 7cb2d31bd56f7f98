#include "kiln/backend/eigen/epilogue.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/backend/eigen/rows.hpp"
#include "kiln/core/argument.hpp"

namespace kiln::eigen {

namespace {
constexpr std::size_t rest_stack_bytes = 24 * 1024;
}

std::optional<product_body> split_product(const program& whole, const basic_instruction<operation>& ins,
                                          const std::function<bool(std::size_t)>& is_constant) {
  std::optional<contraction_parts> parts = split_contraction(whole, ins, is_constant);
  if (!parts) return std::nullopt;
  product_body out;
  out.product = parts->product;
  std::copy(parts->operands, parts->operands + 2, out.operands);
  out.prologue = parts->prologue;
  out.extra = std::move(parts->extra);
  const module_graph& tail = parts->tail;
  if (parts->tailed) {
    out.tail = std::make_unique<tile_program>(tail);
    out.affine = find_affine(tail);
    if (out.affine && out.affine->last != tail.outputs[0].instruction) {
      out.rest = std::make_unique<tile_program>(rest_of(tail, *out.affine));
      if (out.rest->scratch_bytes(product_body::rest_elements) > rest_stack_bytes) out.affine.reset();
    }
  }
  return out;
}

bool product_body::bind(std::span<const tensor> inputs, const tensor& out, std::size_t inner,
                        kernels::affine_tail<float>& to, bool channels_last) const {
  constexpr std::size_t most = 4;  // as many as the form that kernels know has
  if (!affine || out.type != dtype::f32 || affine->addends.size() > most) return false;
  const tensor* addends[most];
  std::size_t count = 0;
  for (std::size_t i : affine->addends) addends[count++] = &inputs[extra[i]];
  if (bias.empty()) return bind_affine(*affine, {addends, count}, out, inner, channels_last, to);
  tensor sum = *addends[0];
  sum.data = reinterpret_cast<std::byte*>(const_cast<float*>(bias.data()));
  addends[0] = &sum;
  return bind_affine(*affine, {addends, count}, out, inner, channels_last, to);
}

void product_body::sum_biases(const kernel_request& request, std::size_t dim) {
  if (!affine) return;
  small_vector<std::size_t> biases, others;
  for (std::size_t a : affine->addends) {
    const std::size_t i = extra[a];
    const dims& lens = request.inputs[i].lens;
    bool repeats = request.constants[i] && request.inputs[i].type == dtype::f32 && dim < lens.size() &&
                   lens[dim].is_constant() && request.constant_layouts[i].offset.is_constant();
    for (std::size_t d = 0; d < lens.size() && repeats; ++d)
      repeats = request.constant_layouts[i].strides[d] == dimension(d == dim ? 1 : 0) ||
                (d != dim && lens[d] == dimension(1));
    (repeats ? biases : others).push_back(a);
  }
  if (biases.size() < 2) return;
  std::vector<float> sum(static_cast<std::size_t>(request.inputs[extra[biases[0]]].lens[dim].value()), 0.0F),
      greatest = sum;
  for (std::size_t a : biases) {
    const std::size_t i = extra[a];
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

void product_body::apply_rest(std::int64_t rows, std::int64_t cols, float* c, std::ptrdiff_t c_row) const {
  alignas(64) std::byte scratch[rest_stack_bytes];
  alignas(64) float together[rest_elements];
  tile_program::cursor cursor(*rest, scratch, rest_elements);
  const auto run = [&](float* at, std::int64_t count) {
    cursor.parameter(0) = cursor.result(0) = {reinterpret_cast<std::byte*>(at), 1};
    cursor.run(0, 0, count);
  };
  const std::int64_t each = rest_elements / std::max<std::int64_t>(cols, 1);
  if (each < 2) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t from = 0; from < cols; from += rest_elements)
        run(c + r * c_row + from, std::min(rest_elements, cols - from));
    return;
  }
  for (std::int64_t first = 0; first < rows; first += each) {
    const std::int64_t count = std::min(each, rows - first);
    for (std::int64_t r = 0; r < count; ++r) std::copy_n(c + (first + r) * c_row, cols, together + r * cols);
    run(together, count * cols);
    for (std::int64_t r = 0; r < count; ++r) std::copy_n(together + r * cols, cols, c + (first + r) * c_row);
  }
}

epilogue::epilogue(const product_body& body, std::span<const tensor> inputs, const tensor& out, std::size_t inner)
    : tail_(body.tail.get()) {
  const std::size_t rank = out.rank(), outer = rank - inner;
  for (std::size_t d = 0; d < outer; ++d) row_lens_.push_back(out.lens[d]);
  if (!tail_) return;
  fits_ = out.type == dtype::f32 && tail_->scratch_bytes(most_columns) <= stack_bytes;
  for (std::size_t i : body.extra) {
    const tensor& t = inputs[i];
    operand o;
    o.data = t.data;
    o.width = static_cast<std::int64_t>(size_of(t.type));
    const auto step_of = [&](std::size_t d) { return t.lens[d] == 1 ? 0 : t.strides[d]; };
    for (std::size_t d = 0; d < outer; ++d) o.steps.push_back(step_of(d));
    // the columns' dims join into one when each step is the next one's times its extent
    std::int64_t step = 0, joined = 1;
    for (std::size_t d = rank; d-- > outer;) {
      if (out.lens[d] == 1) continue;
      if (joined == 1)
        step = step_of(d);
      else if (step_of(d) != step * joined)
        fits_ = false;
      joined *= out.lens[d];
    }
    o.step = step;
    operands_.push_back(o);
  }
}

void epilogue::apply(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
                     std::ptrdiff_t c_row) const {
  alignas(64) std::byte scratch[stack_bytes];
  tile_program::cursor cursor(*tail_, scratch, std::min(most_columns, cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    ints at = row_lens_;
    std::int64_t rest = row0 + r;
    for (std::size_t d = at.size(); d-- > 0;) {
      at[d] = rest % row_lens_[d];
      rest /= row_lens_[d];
    }
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const operand& o = operands_[k];
      std::int64_t offset = col0 * o.step;
      for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * o.steps[d];
      cursor.parameter(k + 1) = {o.data + offset * o.width, o.step};
    }
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
inline_vector<tensor, 40> tail_operands(const product_body& body, std::span<const tensor> inputs,
                                        const tensor& product) {
  inline_vector<tensor, 40> in;
  in.push_back(product);
  for (std::size_t i : body.extra) in.push_back(inputs[i]);
  return in;
}
}  // namespace

void run_tail(const product_body& body, std::span<const tensor> inputs, const tensor& product, const tensor& out,
              std::span<std::byte> scratch, thread_pool& pool) {
  const auto in = tail_operands(body, inputs, product);
  run_rows(*body.tail, {in, std::span(&out, 1), scratch, &pool, nullptr});
}

std::size_t tail_scratch_bytes(const product_body& body, std::span<const tensor> inputs, const tensor& product,
                               const tensor& out, unsigned threads) {
  return rows_scratch_bytes(*body.tail, tail_operands(body, inputs, product), std::span(&out, 1), threads);
}

tensor product_place(const tensor& out, std::byte* scratch) {
  if (out.type == dtype::f32) return out;
  tensor t{scratch, dtype::f32, out.lens, row_major(out.lens)};
  if (out.rank() < 3 || !image_layout_of(out).channels_last) return t;
  const std::int64_t channels = out.lens[1];
  std::int64_t step = channels;
  for (std::size_t d = out.rank(); d-- > 2; step *= out.lens[d]) t.strides[d] = step;
  t.strides[1] = 1;
  t.strides[0] = step;
  return t;
}

std::size_t product_bytes(const tensor& out) {
  return out.type == dtype::f32 ? 0 : (static_cast<std::size_t>(out.elements()) * sizeof(float) + 63) / 64 * 64;
}

}  // namespace kiln::eigen
