#include "kiln/backend/eigen/eigen_target.hpp"

#include <fstream>

#include "kiln/backend/eigen/integers.hpp"
#include "kiln/backend/eigen/isa_layout.hpp"
#include "kiln/backend/eigen/lower.hpp"
#include "kiln/backend/eigen/lower_generic.hpp"
#include "kiln/backend/eigen/recurrent.hpp"
#include "kiln/kernel/pooling_problem.hpp"
#include "kiln/pass/fuse_prologue.hpp"
#include "kiln/pass/integer_products.hpp"
#include "kiln/pass/widen_floats.hpp"

namespace kiln {
namespace {

std::string processor_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find(": "); line.starts_with("model name") && at != line.npos)
      return line.substr(at + 2);
  return "an unnamed processor";
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

std::string eigen_target::machine(unsigned threads) const {
  static const std::string model = processor_model();
  const eigen::isa_table& isa = *eigen::kiln_eigen_isa();
  return "eigen " + model + ", vectors of " + std::to_string(isa.vector_bytes) + " bytes, " +
         (isa.matrix_unit_available() ? "its matrix unit, " : "") + std::to_string(threads) + " threads, kernels " +
         std::to_string(eigen::kernel_version);
}

target_passes eigen_target::passes() const {
  static constexpr named_pass<program> forms[] = {
      {"integer_products", [](program& p) { return integer_products(p); }},
      {"widen_floats", [](program& p) { return widen_floats(p); }},
  };
  static constexpr named_pass<program> fuse[] = {
      {"fuse_prologue", [](program& p) { return fuse_prologue(p); }},
  };
  return {forms, fuse};
}

image_role eigen_target::role(const program& whole, const basic_instruction<operation>& instruction) const {
  const std::size_t rank = instruction.results[0].rank();
  const dtype type = instruction.results[0].type;
  if (rank > 4 || (type != dtype::f32 && type != dtype::u8 && type != dtype::i8)) return image_role::none;
  const operation* op = &instruction.op;
  const auto of = [](const module_graph& m, const basic_instruction<operation>& i) {
    return eigen::role_of_convolution(*i.op.get_if<op::convolution>(), m.shape_of(i.inputs[0]),
                                      m.shape_of(i.inputs[1]));
  };
  if (const auto* fused = op->get_if<op::fused>()) {
    if (fused->kind == fusion::pointwise) return image_role::follows;
    if (fused->kind != fusion::contraction) return image_role::none;
    const module_graph& body = whole.module(fused->body);
    for (std::uint32_t i = 0; i < body.size(); ++i) {
      if (body[i].kind != instruction_kind::op || body[i].op.kind() != op_kind::contraction) continue;
      op = &body[i].op;
      if (op->is<op::convolution>()) return of(body, body[i]);
      if (op->is<op::integer_convolution>()) return image_role::gains;
    }
  }
  if (op->is<op::convolution>()) return of(whole.main(), instruction);
  if (op->is<op::integer_convolution>()) return image_role::gains;
  if (type != dtype::f32) return op->kind() == op_kind::pointwise ? image_role::follows : image_role::none;
  const auto* pooling = op->get_if<op::pooling>();
  if (pooling && pooling->mode != op::pooling_mode::lp) return image_role::turns;
  return op->is<op::lrn>() || op->kind() == op_kind::pointwise ? image_role::follows : image_role::none;
}

std::unique_ptr<kernel> eigen_target::make_kernel(const kernel_request& request) const {
  using lower = std::unique_ptr<kernel> (*)(const kernel_request&);
  // Means of whole images are rows too, which `lower_rows` folds without regard to where channels lie: windows first.
  constexpr lower families[] = {eigen::lower_window,      eigen::lower_rows,       eigen::lower_dot,
                                eigen::lower_convolution, eigen::lower_integers,   eigen::lower_attention,
                                eigen::lower_gather,      eigen::lower_recurrent,  eigen::lower_deconvolution,
                                eigen::lower_placement,   eigen::lower_arg_extreme};
  for (lower family : families)
    if (auto made = family(request)) return made;
  return nullptr;
}

}  // namespace kiln
