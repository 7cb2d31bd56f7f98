#pragma once
#include "kiln/op/evaluation.hpp"

namespace kiln {

/// The unsigned fields of a byte as `op::block_dequantize` packs them.
constexpr std::int64_t fields_per_byte(std::int64_t bits) { return 8 / bits; }

namespace op {

/// Numbers that are stored small in blocks: (data - zero point) * scale * factor, where each block of `block` elements
/// along `axis` has a scale and a zero point. Operands are data, scales and, where there are some, zero points.
///
/// Data is of integers or floats of up to 8 bits, an element each; or, with `bits` of 2 or 4, of u8 with 8 / bits
/// fields in each byte along the last dim, the lowest bits first: unsigned integers, or with `floats` f4e2m1. `extent`
/// is the result's extent there, where the last byte or block has more room; 0: all fields count. Scales have the
/// result's extents, but one for each block along `axis`. Zero points are floats with the scales' extents; or of the
/// data's type, and packed where the data is, each row in whole bytes; `zero` stands for absent ones. Floats have none.
/// The result has the scales' type, or f32 where that is of 8 bits. MXFP4 and MXFP8 (OCP Microscaling Formats) are
/// blocks of 32 with scales of f8e8m0, NVFP4 blocks of 16 with scales of f8e4m3fn and a factor.
///
/// Products with constant weights of this form read them as they are stored, where the target has a kernel for it; else
/// the pass expand_block_dequantize writes them as arithmetic. `bytes_suffice` permits such a product to round its
/// other operand to 8 bits, symmetrically by the greatest magnitude of each block.
struct block_dequantize {
  std::int64_t bits = 8, axis = -1, block = 32, extent = 0, zero = 0;
  bool bytes_suffice = false, floats = false;
  float factor = 1;
  static constexpr auto types = dtypes::floats;
  static constexpr int typed_input = 1;
  static constexpr std::int64_t most_block = std::int64_t{1} << 20;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() < 2 || in.size() > 3)
      return fault::of(errc::invalid_argument, "number of inputs", "2 or 3", in.size());
    const shape &data = in[0], &scale = in[1];
    if (bits != 8 && bits != 4 && bits != 2) return fault::of(errc::unsupported, "bits of a field", "2, 4 or 8", bits);
    if (block < 1 || block > most_block)
      return fault::of(errc::invalid_argument, "elements of a block", "1 to 1048576", block);
    if (bits == 8 ? size_of(data.type) != 1 || data.type == dtype::boolean : data.type != dtype::u8)
      return fault::of(errc::unsupported, "dtype of the data", bits == 8 ? "a number of up to 8 bits" : "u8",
                       data.type);
    if (floats && bits != 4) return fault::of(errc::unsupported, "bits of a float's field", 4, bits);
    if (has_floats(data.type) && (zero != 0 || in.size() == 3))
      return fault::of(errc::unsupported, "floats in blocks have no zero points");
    if (!is_float(scale.type)) return fault::of(errc::unsupported, "dtype of the scales", "a float", scale.type);
    const std::size_t rank = data.rank();
    const std::int64_t along = rank == 0 ? -1 : normal_axis(axis, rank);
    if (along < 0) return fault::of(errc::shape_mismatch, "the axis of the blocks lies within the rank", rank, axis);
    shape out(is_narrow(scale.type) ? dtype::f32 : scale.type, data.lens);
    out.lens[rank - 1] *= fields_per_byte(bits);
    if (extent != 0) {
      const dimension most = out.lens[rank - 1];
      if (!most.is_constant() || extent < 1 || extent > most.value())
        return fault::of(errc::shape_mismatch, "the extent lies within the data's fields", most, extent);
      out.lens[rank - 1] = extent;
    }
    const dimension blocked = out.lens[static_cast<std::size_t>(along)];
    if (!blocked.is_constant())
      return fault::of(errc::unsupported, "extent of the axis of the blocks", "a constant", blocked);
    dims each = out.lens;
    each[static_cast<std::size_t>(along)] = (blocked.value() + block - 1) / block;
    if (!(scale.lens == each))
      return fault::of(errc::shape_mismatch, "extents of the scales: one for each block", each, scale.lens);
    if (in.size() == 2) return out;
    if (!is_float(in[2].type)) {
      if (in[2].type != data.type)
        return fault::of(errc::unsupported, "dtype of the zero points", data.type, in[2].type);
      const std::int64_t fields = fields_per_byte(bits);
      if (fields > 1 && each[rank - 1].is_constant()) each[rank - 1] = (each[rank - 1].value() + fields - 1) / fields;
    }
    if (!(in[2].lens == each)) return fault::of(errc::shape_mismatch, "extents of the zero points", each, in[2].lens);
    return out;
  }

  /// Whether numbers of data of this type are floats.
  constexpr bool has_floats(dtype data) const { return floats || is_float(data); }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    if (!e.has(2)) return fill<T>(e, [&](std::int64_t, std::int64_t) { return static_cast<T>(zero); });
    if (!is_float(e.in_shape(2).type)) {
      const auto packed = e.template in<float>(2);
      return fill<T>(e, [&](std::int64_t row, std::int64_t column) {
        return static_cast<T>(field(packed.data, row, column, packed.lens[packed.rank() - 1]));
      });
    }
    const auto zeros = e.template in<T>(2);
    fill<T>(e,
            [&](std::int64_t row, std::int64_t column) { return zeros[row * zeros.lens[zeros.rank() - 1] + column]; });
  }

 private:
  // `zero_of(row, column)` is the zero point of the block whose scale is there; rows are those of all dims but the
  // last.
  template <class T, class ZeroOf> constexpr void fill(Evaluation auto& e, ZeroOf&& zero_of) const {
    const auto data = e.template in<float>(0);  // exact: numbers of 8 bits
    const auto scale = e.template in<T>(1);
    const auto out = e.template out<T>();
    const std::size_t rank = out.rank(), last = rank - 1;
    const auto along = static_cast<std::size_t>(normal_axis(axis, rank));
    ints lens(rank, 0), at(rank, 0);
    for (std::size_t d = 0; d < rank; ++d) lens[d] = out.lens[d];
    const std::int64_t n = out.size();
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t row = 0, scale_row = 0;
      for (std::size_t d = 0; d < last; ++d) {
        row = row * lens[d] + at[d];
        scale_row = scale_row * scale.lens[d] + (d == along ? at[d] / block : at[d]);
      }
      const std::int64_t column = last == along ? at[last] / block : at[last];
      const auto stored = static_cast<T>(field(data.data, row, at[last], data.lens[last]));
      const T real = (stored - zero_of(scale_row, column)) * scale[scale_row * scale.lens[last] + column];
      out[k] = factor == 1 ? real : real * static_cast<T>(factor);
      next_index(at, lens);
    }
  }
  // Field `column` of a row of bytes.
  constexpr float field(const float* bytes, std::int64_t row, std::int64_t column, std::int64_t row_bytes) const {
    if (bits == 8) return bytes[row * row_bytes + column];
    const std::int64_t each = fields_per_byte(bits);
    const auto byte = static_cast<std::uint32_t>(bytes[row * row_bytes + column / each]);
    const std::uint32_t code = byte >> (column % each * bits) & ((1u << bits) - 1);
    if (!floats) return static_cast<float>(code);
    float4_e2m1 number;
    number.bits = static_cast<std::uint8_t>(code);
    return static_cast<float>(number);
  }
};

}  // namespace op

}  // namespace kiln
