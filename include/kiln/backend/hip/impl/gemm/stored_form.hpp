#pragma once
#include <cmath>

#include "kiln/backend/hip/impl/gemm/few_rows.hpp"
#include "kiln/core/half.hpp"
#include "kiln/lower/stored_product.hpp"

namespace kiln::hip {

/// How kernels read weights that are stored in blocks (kernels/gemm/stored_numbers.hpp).
struct stored_form {
  std::string text;         ///< the type in a kernel's text
  std::string of_few_rows;  ///< the same where a product of few rows reads them
  int run = 0;              ///< numbers of a piece
  /// Words of scales, two each, of the numbers in a line of the cache; 0 where scales are not words of their own.
  int scale_words = 0;
  gpu::stored_argument value{};  ///< without addresses
};

/// The form of weights that kernels read as they are: rows of whole pieces along the depth, numbers of four bits,
/// bytes or floats of eight bits, scales of the product's 16-bit type, zero points of one number or packed as unsigned
/// numbers are. Empty for others.
template <class Module> std::optional<stored_form> find_stored_form(const stored_weights& w, const Module& m) {
  if (w.in_blocks) return std::nullopt;
  const shape &data = m.shape_of(w.operands[0]), &scales = m.shape_of(w.operands[1]);
  const auto count = [](const shape& s) { return static_cast<int>(s.lens[1].value()); };
  const bool four = w.op.bits == 4, is_signed = data.type == dtype::i8;
  const bool floats = data.type == dtype::f8e4m3fn || data.type == dtype::f8e5m2;
  if ((scales.type != dtype::f16 && scales.type != dtype::bf16) || w.op.floats || w.op.factor != 1 || !w.depth_last ||
      !(four || (w.op.bits == 8 && (is_signed || floats || data.type == dtype::u8))))
    return std::nullopt;
  stored_form out;
  out.run = four ? 32 : 16;
  const bool zeros = w.operands.size() > 2;
  const std::int64_t zero = w.op.zero + (is_signed ? 128 : 0);
  if (w.op.block % out.run != 0 || w.depth % out.run != 0 || count(data) % 16 != 0 || zero < 0 ||
      zero > (four ? 15 : 255) || (zeros && (is_signed || m.shape_of(w.operands[2]).type != dtype::u8)))
    return std::nullopt;
  out.text = std::string(four     ? "nibbles<"
                         : floats ? "float8_numbers<"
                                  : "byte_numbers<") +
             std::string(stored_name(scales.type)) + ", " + std::to_string(w.op.block);
  if (floats)
    out.text += data.type == dtype::f8e5m2 ? ", true" : ", false";
  else
    out.text += zeros ? ", true" : ", false";
  if (!four && !floats) out.text += is_signed ? ", true" : ", false";
  out.text += ">";
  out.of_few_rows = out.text;
  const std::int64_t in_line = out.run * gpu::staged_lines::line / 16, in_word = 2 * w.op.block;
  if (!zeros && in_line % in_word == 0 && w.depth % in_word == 0) out.scale_words = static_cast<int>(in_line / in_word);
  out.value.row_bytes = count(data);
  out.value.scale_row = count(scales);
  out.value.zero_row = zeros ? count(m.shape_of(w.operands[2])) : 0;
  out.value.zero = static_cast<int>(zero);
  return out;
}

/// Has products of few rows read numbers of four bits with zero point 8 by `centered_nibbles`, where the greatest and
/// the least scale allow a lift under which no product of a number and its scale loses bits that it has without.
inline void center(stored_form& form, const stored_weights& w, const literal& scales) {
  constexpr float most = 65504;
  constexpr int least_lift = 8, most_lift = 24;
  if (w.op.bits != 4 || w.operands.size() > 2 || form.value.zero != 8 || scales.get_shape().type != dtype::f16) return;
  constexpr float normal = 0x1p-14f;  // the least that f16 has all its bits of
  float greatest = 0, least = most;
  const auto* const codes = reinterpret_cast<const std::uint16_t*>(scales.bytes());
  for (std::int64_t i = 0; i < scales.elements(); ++i) {
    const float x = std::abs(half_value(codes[i]));
    if (!(x <= most)) return;
    greatest = std::max(greatest, x);
    if (x != 0) least = std::min(least, x);
  }
  int lift = most_lift;
  while (std::ldexp(greatest, lift) > most) --lift;
  // the greatest lift changes no scale
  if (lift < least_lift || (lift < most_lift && std::ldexp(least, lift - most_lift) < normal)) return;
  form.of_few_rows = "centered_nibbles<" + std::to_string(w.op.block) + ", " + std::to_string(lift) + ">";
}

/// A kernel that writes such weights out, rows of them with the depth contiguous.
struct widening {
  static constexpr unsigned threads = 256;
  source what;
  extent3 grid;
};
inline widening plan_widening(const stored_form& form, dtype type, std::int64_t rows, std::int64_t depth) {
  kernel_text t(nullptr);
  const std::string_view name = stored_name(type);
  t.line("#include \"kiln/backend/hip/kernels/gemm/stored_numbers.hpp\"");
  t.open_kernel(static_cast<int>(widening::threads), "widen(stored_argument from, ", name,
                "* to, int rows, int depth)");
  t.line("widen_numbers<", name, ">(", form.text, "{from}, to, rows, depth);");
  t.close();
  const std::int64_t pieces = rows * depth / form.run;
  return {t.whole("widen"), {static_cast<unsigned>((pieces + widening::threads - 1) / widening::threads)}};
}

/// The tile of a product of few rows by such weights: of more than four rows by lines, and of fewer, where to unpack
/// the weights takes the time, in as many warps as there can be.
inline gemm_tile stored_tile(const gemm_problem& p, const stored_form& form, const architecture& where) {
  constexpr std::int64_t most_unpacked = 4;
  if (form.scale_words != 0 && p.rows > most_unpacked)
    if (const auto lines = tile_staged(p.rows, where, form.scale_words)) return *lines;
  gemm_tile tile = few_rows_tiles(p.rows, p.cols, where).front();
  if (p.rows > 16) return tile;
  tile.cols = 16, tile.stages = 1;
  tile.warps_n = fills_with(p.cols, 2 * tile.cols, where) ? 8 : 16;
  return tile;
}

}  // namespace kiln::hip
