#include <algorithm>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/quantized.hpp"
#include "kiln/backend/eigen/strips.hpp"
#include "kiln/core/mapped_file.hpp"
#include "kiln/lower/stored_product.hpp"
#include "kiln/op/quant/range.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/widened_constant.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

using quantized_body = lower::stored_product<module_graph>;

// An operand's constant: as it is stored, where it is one of 16 bits that would be widened.
const literal* stored_constant(const kernel_request& r, std::size_t i) {
  return r.constants[i] ? r.constants[i] : find_widened_constant(r.graph, r.instruction.inputs[i]).from;
}

std::optional<quantized_body> find_quantized_body(const kernel_request& r) {
  auto out = lower::find_stored_product(r.whole, r.instruction, dtype::f32);
  if (out)
    for (const std::size_t i : out->inputs())
      if (!stored_constant(r, i)) return std::nullopt;
  return out;
}

class quantized_kernel final : public kernel {
 public:
  quantized_kernel(const quantized_body& b, const kernel_request& r)
      : body_(compiled_contraction(b.body)), operands_(b.inputs()) {
    const op::block_dequantize& op = b.weights.op;
    const dtype data = r.inputs[operands_[0]].type;
    form_.k = b.weights.depth, form_.n = b.weights.columns, form_.block = op.block;
    form_.bits = static_cast<int>(stored_bits(op, data));
    const int sign_offset = is_signed_integer(data) ? 1 << (form_.bits - 1) : 0;
    form_.zero = static_cast<float>(op.zero + sign_offset);
    form_.numbers = number_format_of(op.floats ? dtype::f4e2m1 : data);
    form_.factor = op.factor;
    form_.split_nibbles = b.weights.split_nibbles;
    if (operands_.size() > 2)
      form_.zeros = is_float(r.inputs[operands_[2]].type) ? zero_format::floats : zero_format::bytes;
    const quantized_table& isa = *kiln_eigen_quantized();
    rounds_ = op.bytes_suffice && !form_.numbers.is_float() && op.factor == 1 && form_.bits <= isa.byte_bits &&
              form_.block % 16 == 0;
    quantized_source from;
    const literal& scales = *stored_constant(r, operands_[1]);
    from.scale_type = scale_type_of(scales.get_shape().type);
    if (form_.zeros == zero_format::floats)
      from.float_zeros = scale_type_of(stored_constant(r, operands_[2])->get_shape().type);
    form_.scales = static_cast<scale_format>(r.decide(5, [&] {
      if (from.scale_type >= scale_format::e8m0)
        return are_plain_scales(scales, from.scale_type) ? from.scale_type : scale_format::f32;
      if (from.scale_type != scale_format::f32) return from.scale_type;
      return isa.are_halves(scales.bytes(), scales.elements()) ? scale_format::f16 : scale_format::f32;
    }));
    packed_ = r.packed(static_cast<std::size_t>(isa.packed_size(form_)), [&](std::byte* to) {
      literal numbers, rows_of_scales;
      if (b.weights.in_blocks && lies_in_rows_of_blocks(r)) {
        const std::int64_t first = r.constant_layouts[operands_[1]].offset.value() * 2;
        from.rows = scales.bytes() + first;
      } else if (b.weights.in_blocks) {
        numbers = laid_out(*stored_constant(r, operands_[0]), r.constant_layouts[operands_[0]]);
        rows_of_scales = laid_out(scales, r.constant_layouts[operands_[1]]);
        from.data = {numbers.bytes(), 1, form_.depth(), static_cast<int>(op.bits), sign_offset};
        from.scales = {rows_of_scales.bytes(), 1, form_.blocks()};
      } else {
        from.data = part(r, 0, b.weights.depth_last, static_cast<int>(op.bits), sign_offset);
        from.scales = part(r, 1, b.weights.depth_last, 8, 0);
      }
      if (form_.zeros != zero_format::uniform)
        from.zeros = part(r, 2, b.weights.depth_last, form_.zeros == zero_format::bytes ? static_cast<int>(op.bits) : 8,
                          sign_offset);
      const auto pack = [&](std::int64_t first, std::int64_t end) { isa.pack(*r.pool, to, form_, from, first, end); };
      const buffer& stored = numbers.bytes() ? numbers.data() : stored_constant(r, operands_[0])->data();
      if (from.rows)
        pack_in_strips(*r.pool, stored, from.rows, form_.blocks() * form_.block_bytes(), form_.n, pack);
      else if (from.data.k_step == 1 && from.data.n_step >= form_.k)
        pack_in_strips(*r.pool, stored, from.data.at, from.data.n_step / fields_per_byte(from.data.bits), form_.n,
                       pack);
      else
        pack(0, form_.n);
      for (const std::size_t i : operands_) forget_pages(stored_constant(r, i)->data());
    });
  }

  std::string name() const override {
    return "dot of " + std::to_string(form_.bits) + (form_.numbers.is_float() ? "-bit float blocks" : "-bit blocks") +
           (body_.epilogue ? "+epilogue" : "") + (rounds_ ? " (bytes)" : " (floats)");
  }
  bool packed_input(std::size_t i) const override {
    return std::find(operands_.begin(), operands_.end(), i) != operands_.end();
  }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t i) const override {
    return i == body_.operands[0] ? stride_support::dense : stride_support::any;
  }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const tensor product = product_place(out[0], nullptr);
    auto n = static_cast<std::size_t>(kiln_eigen_quantized()->scratch_size(problem(in, product), threads));
    if (body_.epilogue && !tiled_epilogue(body_, in, out[0], 1).fits())
      n = std::max(n, epilogue_scratch_bytes(body_, in, product, out[0], threads));
    return product_bytes(out[0]) + n;
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const tensor product = product_place(l.out[0], l.scratch.data());
    const std::span<std::byte> scratch = l.scratch.subspan(product_bytes(l.out[0]));
    std::optional<tiled_epilogue> tiled;
    if (body_.epilogue) tiled.emplace(body_, l.in, l.out[0], 1);
    gemm_epilogue epilogue;
    if (tiled && tiled->fits()) {
      epilogue.self = &*tiled;
      epilogue.call = [](void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                         float* c, std::ptrdiff_t c_row) {
        static_cast<const tiled_epilogue*>(self)->apply(row0, rows, col0, cols, c, c_row);
      };
    }
    kiln_eigen_quantized()->multiply(*l.pool, problem(l.in, product), scratch.data(), epilogue);
    if (tiled && !tiled->fits()) run_epilogue(body_, l.in, product, l.out[0], scratch, *l.pool);
  }

 private:
  static scale_format scale_type_of(dtype t) {
    switch (t) {
      case dtype::f16: return scale_format::f16;
      case dtype::bf16: return scale_format::bf16;
      case dtype::f8e8m0: return scale_format::e8m0;
      case dtype::f8e4m3fn: return scale_format::e4m3;
      default: return scale_format::f32;
    }
  }
  static number_format number_format_of(dtype t) {
    switch (t) {
      case dtype::f4e2m1: return {1, 1};
      case dtype::f8e4m3fn: return {3, 7};
      case dtype::f8e4m3fnuz: return {3, 8};
      case dtype::f8e5m2: return {2, 15};
      case dtype::f8e5m2fnuz: return {2, 16};
      default: return {};
    }
  }
  // Whether codes of scales are none that a kernel would have to treat apart.
  static bool are_plain_scales(const literal& scales, scale_format type) {
    const std::span<const std::byte> codes(scales.bytes(), static_cast<std::size_t>(scales.elements()));
    return std::all_of(codes.begin(), codes.end(), [type](std::byte b) {
      const auto code = static_cast<unsigned>(b);
      return type == scale_format::e8m0 ? code != 0 && code != 255 : code < 0x7f;
    });
  }
  quantized_problem problem(std::span<const tensor> in, const tensor& product) const {
    quantized_problem p;
    p.form = form_;
    p.m = product.elements() / std::max<std::int64_t>(1, form_.n);
    const tensor& a = in[body_.operands[0]];
    p.a = a.as<const float>();
    p.a_row = form_.k;
    p.b = packed_.data();
    p.c = product.as<float>();
    p.c_row = form_.n;
    p.rounds = rounds_;
    return p;
  }
  // Whether numbers and scales are parts of rows of blocks, each its f16 scale and then its numbers.
  bool lies_in_rows_of_blocks(const kernel_request& r) const {
    const literal &numbers = *stored_constant(r, operands_[0]), &scales = *stored_constant(r, operands_[1]);
    const layout &at = r.constant_layouts[operands_[0]], &scale_at = r.constant_layouts[operands_[1]];
    const bool four = form_.bits == 4, is_signed = numbers.get_shape().type == dtype::i8;
    const std::int64_t each = form_.block_bytes(), row = form_.blocks() * each;
    return form_.scales == scale_format::f16 && scales.get_shape().type == dtype::f16 && form_.block == 32 &&
           (four || is_signed) && numbers.bytes() == scales.bytes() && at.offset == scale_at.offset * 2 + 2 &&
           at.strides == dims{row, each, 1} && scale_at.strides[0] * 2 == dimension(row) &&
           scale_at.strides[1] * 2 == dimension(each);
  }
  // A constant operand's place. Steps count the fields of `bits` bits, where a byte has several.
  quantized_source::part part(const kernel_request& r, std::size_t k, bool depth_last, int bits,
                              int sign_offset) const {
    const std::size_t i = operands_[k];
    const layout& at = r.constant_layouts[i];
    const std::int64_t fields = fields_per_byte(bits);
    const literal& stored = *stored_constant(r, i);
    const auto element = static_cast<std::ptrdiff_t>(size_of(stored.get_shape().type));
    const std::ptrdiff_t row = at.strides[0].value() * fields, column = at.strides[1].value();
    quantized_source::part out;
    out.at = stored.bytes() + at.offset.value() * element;
    out.k_step = depth_last ? column : row;
    out.n_step = depth_last ? row : column;
    out.bits = bits;
    out.sign_offset = sign_offset;
    return out;
  }

  fused_contraction body_;
  small_vector<std::size_t> operands_;
  quantized_form form_;
  bool rounds_ = false;
  buffer packed_;
};

// Whether an operand is of blocks whose places are known.
bool lies_in_blocks(const kernel_request& r, std::size_t i) {
  const layout& at = r.constant_layouts[i];
  return at.lens.size() == 3 && is_constant(at.lens) && is_constant(at.strides);
}
// Whether an operand lies so that fields of a byte are adjacent.
bool lies_in_rows(const kernel_request& r, std::size_t i) {
  const layout& at = r.constant_layouts[i];
  return at.lens.size() == 2 && is_constant(at.lens) && at.strides[0].is_constant() &&
         (at.strides[1] == dimension(1) || at.lens[1] == dimension(1));
}

}  // namespace

std::unique_ptr<kernel> lower_quantized(const kernel_request& r) {
  const auto body = find_quantized_body(r);
  if (!body) return nullptr;
  for (std::size_t k = 0; k < body->weights.operands.size(); ++k) {
    const dtype t = r.inputs[body->operands[k]].type;
    const bool is_read =
        k == 0 || t == dtype::f8e8m0 || t == dtype::f8e4m3fn || (t != dtype::f64 && !quantize::is_float8(t));
    const std::size_t i = body->operands[k];
    if (!is_read || !(body->weights.in_blocks ? lies_in_blocks(r, i) : lies_in_rows(r, i))) return nullptr;
  }
  return std::make_unique<quantized_kernel>(*body, r);
}

}  // namespace kiln::eigen
