#include "kiln/backend/eigen/eigen_target.hpp"

#include <fstream>

#include "kiln/backend/eigen/gates.hpp"
#include "kiln/backend/eigen/index.hpp"
#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/isa_layout.hpp"
#include "kiln/backend/eigen/linear_algebra.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/backend/eigen/paged_attention.hpp"
#include "kiln/backend/eigen/quantized.hpp"
#include "kiln/backend/eigen/recurrent.hpp"
#include "kiln/backend/eigen/reductions.hpp"
#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/kernel/pool/problem.hpp"
#include "kiln/lower/contraction.hpp"
#include "kiln/lower/row_body.hpp"
#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/deconvolution_as_convolution.hpp"
#include "kiln/pass/expand_block_dequantize.hpp"
#include "kiln/pass/expand_quantization.hpp"
#include "kiln/pass/fold_batch_norm.hpp"
#include "kiln/pass/fuse_prologue.hpp"
#include "kiln/pass/fuse_quantization.hpp"
#include "kiln/pass/fuse_stored_keys.hpp"
#include "kiln/pass/fuse_stored_weights.hpp"
#include "kiln/pass/gather_stored_numbers.hpp"
#include "kiln/pass/integer_products.hpp"
#include "kiln/pass/move_quantization.hpp"
#include "kiln/pass/recognize_gelu.hpp"
#include "kiln/pass/reduce_before_reshape.hpp"
#include "kiln/pass/reduce_in_rows.hpp"
#include "kiln/pass/unread_taps.hpp"
#include "kiln/pass/widen_floats.hpp"
#include "kiln/pass/zero_points_in_floats.hpp"

namespace kiln {
namespace {

std::string processor_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find(": "); line.starts_with("model name") && at != line.npos)
      return line.substr(at + 2);
  return "an unnamed processor";
}

// Whether a body folds whole images, all of their dims but the batch, and makes images of them: the order in which
// their elements lie is free.
bool normalizes_images(const program& whole, const basic_instruction<operation>& instruction) {
  const auto* const fused = instruction.op.get_if<op::fused>();
  if (!fused || fused->kind != fusion::reduce) return false;
  const auto rows = lower::find_row_body(whole.module(fused->body));
  if (!rows || !rows->reduces || !(rows->full == instruction.results[0].lens)) return false;
  for (std::size_t d = 1; d < rows->full.size(); ++d)
    if (!rows->folded[d] && !(rows->full[d] == dimension(1))) return false;
  return true;
}

}  // namespace

void eigen::check_isa(const isa_table& table) {
  constexpr std::uint64_t own = isa_layout();
  if (table.layout != own)
    raise(errc::unsupported,
          "the loader found a libkiln_eigen.so.1 of another build of kiln than the program is of: expected layout " +
              std::to_string(own) + ", found " + std::to_string(table.layout));
}

eigen_target::eigen_target() { eigen::check_isa(*eigen::kiln_eigen_isa()); }

void eigen_target::forbid_matrix_unit() { eigen::kiln_eigen_isa()->forbid_matrix_unit(); }

std::string eigen_target::binary_format() const {
  const eigen::isa_table& isa = *eigen::kiln_eigen_isa();
  const eigen::integer_table& integers = *eigen::kiln_eigen_integers();
  const int byte_bits = eigen::kiln_eigen_quantized()->byte_bits;
  return "eigen, vectors of " + std::to_string(isa.vector_bytes) + " bytes" +
         (isa.matrix_unit_available() ? ", matrix unit" : "") + ", integers of depth " +
         std::to_string(integers.depth) + " and offset " + std::to_string(integers.signed_offset) +
         ", blocks of up to " + std::to_string(byte_bits) + " bits by bytes, kernels " +
         std::to_string(eigen::kernel_version);
}

std::string eigen_target::machine(unsigned threads) const {
  static const std::string model = processor_model();
  const eigen::isa_table& isa = *eigen::kiln_eigen_isa();
  return "eigen " + model + ", vectors of " + std::to_string(isa.vector_bytes) + " bytes, " +
         (isa.matrix_unit_available() ? "its matrix unit, " : "") + std::to_string(threads) + " threads, kernels " +
         std::to_string(eigen::kernel_version);
}

target_passes eigen_target::passes() const {
  static constexpr named_pass<program> forms[] = {
      {"expand_quantization", [](program& p) { return expand_quantization(p, true); }},
      {"move_quantization", [](program& p) { return move_quantization(p); }},
      // while what is outside an image of bytes is still zero
      {"cut_unread_taps", [](program& p) { return cut_unread_taps(p); }},
      {"integer_products", [](program& p) { return integer_products(p); }},
      {"reduce_before_reshape", [](program& p) { return reduce_before_reshape(p); }},
      {"reduce_in_rows", [](program& p) { return reduce_in_rows(p); }},
      {"zero_points_in_floats", [](program& p) { return zero_points_in_floats(p); }},
      {"gather_stored_numbers", [](program& p) { return gather_stored_numbers(p); }},
      {"expand_block_dequantize", [](program& p) { return expand_block_dequantize(p, false); }},
      {"widen_floats", [](program& p) { return widen_floats(p); }},
      // factors that conversions kept apart from the weights
      {"constant_folding", [](program& p) { return constant_folding(p); }},
      {"recognize_gelu", [](program& p) { return recognize_gelu(p); }},
      {"deconvolution_as_convolution", [](program& p) { return deconvolution_as_convolution(p); }},
      {"fold_batch_norm", [](program& p) { return fold_batch_norm(p); }},
  };
  static constexpr named_pass<program> fuse[] = {
      {"fuse_prologue", [](program& p) { return fuse_prologue(p, eigen::gate_gains); }},
      {"fuse_expanded_depthwise", [](program& p) { return eigen::fuse_expanded_depthwise(p); }},
      {"fuse_quantization", [](program& p) { return fuse_quantization(p); }},
      {"fuse_byte_attention", [](program& p) { return eigen::fuse_byte_attention(p); }},
      {"fuse_stored_weights", [](program& p) { return fuse_stored_weights(p); }},
      {"fuse_stored_keys", [](program& p) { return fuse_stored_keys(p); }},
  };
  return {forms, fuse};
}

lower::layout_role eigen_target::role(const program& whole, const basic_instruction<operation>& instruction) const {
  using lower::layout_role;
  const shape& made = instruction.results[0];
  if (made.rank() > 4 || (made.type != dtype::f32 && made.type != dtype::u8 && made.type != dtype::i8))
    return layout_role::none;
  if (made.type == dtype::f32 && normalizes_images(whole, instruction)) return layout_role::propagates;
  if (instruction.results.size() != 1) return lower::pointwise_role(instruction);
  if (const auto contraction = lower::contraction_of(whole, instruction)) {
    if (const auto* conv = contraction.get_if<op::convolution>())
      return eigen::role_of_convolution(*conv, contraction.operand(0), contraction.operand(1));
    return contraction.get_if<op::integer_convolution>() ? layout_role::prefers_nhwc : layout_role::none;
  }
  if (eigen::is_expanded_depthwise(whole, instruction)) return layout_role::prefers_nhwc;
  const auto* pooling = instruction.op.get_if<op::pooling>();
  if (made.type == dtype::f32 && pooling && pooling->mode != op::pooling_mode::lp) return layout_role::adapts;
  if (made.type == dtype::f32 && instruction.op.is<op::lrn>()) return layout_role::propagates;
  if (made.type != dtype::f32 && pooling && pooling->mode == op::pooling_mode::max) return layout_role::propagates;
  return lower::pointwise_role(instruction);
}

std::unique_ptr<kernel> eigen_target::make_kernel(const kernel_request& request) const {
  using lower = std::unique_ptr<kernel> (*)(const kernel_request&);
  // Means of whole images are rows, too, but `lower_window` reads NHWC in order: it comes first.
  constexpr lower families[] = {
      eigen::lower_window,        eigen::lower_byte_pooling,     eigen::lower_byte_pointwise,
      eigen::lower_byte_mean,     eigen::lower_reduction,        eigen::lower_rows,
      eigen::lower_dot,           eigen::lower_convolution,      eigen::lower_integers,
      eigen::lower_byte_matrices, eigen::lower_byte_attention,   eigen::lower_quantized,
      eigen::lower_attention,     eigen::lower_paged_attention,  eigen::lower_index,
      eigen::lower_resample,      eigen::lower_grid_sample,      eigen::lower_roi_align,
      eigen::lower_recurrent,     eigen::lower_linear_attention, eigen::lower_deconvolution,
      eigen::lower_placement,     eigen::lower_selection,        eigen::lower_product,
      eigen::lower_squares,       eigen::lower_fourier,          eigen::lower_dynamic_quantize};
  for (lower family : families)
    if (auto made = family(request)) return made;
  return nullptr;
}

}  // namespace kiln
