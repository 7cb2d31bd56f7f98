#include "kiln/onnx/impl/ops/activation.hpp"
#include "kiln/onnx/impl/ops/quantize.hpp"

namespace kiln::onnx {

value matmul(value a, value b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.unsqueeze({0});
  if (column) b = b.unsqueeze({1});
  value out = a.dot(b);
  if (column) out = out.squeeze({-1});
  if (row) out = out.squeeze({column ? -1 : -2});
  return out;
}

namespace {

variables import_matmul(node_context& c) { return {matmul(c.in(0), c.in(1))}; }

value swap_last(value x) {
  ints permutation = axes_from(0, x.rank());
  if (permutation.size() > 1) std::swap(permutation[x.rank() - 2], permutation[x.rank() - 1]);
  return x.transpose(permutation);
}

variables import_gemm(node_context& c) {
  const value a = c.flag("transA") ? c.in(0).transpose({1, 0}) : c.in(0),
              b = c.flag("transB") ? c.in(1).transpose({1, 0}) : c.in(1);
  const float alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  value out = a.dot(b);
  if (alpha != 1) out = out * alpha;
  if (!c.has(2) || beta == 0) return {out};
  const value addend = beta == 1 ? c.in(2) : c.in(2) * beta;
  return {out + addend.broadcast_to(out.get_shape().lens)};
}

// Gemm, then an activation, whose attributes begin with this prefix.
variables import_fused_gemm(node_context& c) {
  constexpr std::string_view prefix = "activation_";
  std::vector<attribute> own;
  for (const attribute& a : c.source.attributes) {
    if (!a.name.starts_with(prefix)) continue;
    own.push_back(a);
    own.back().name.erase(0, prefix.size());
  }
  return {activated(c, import_gemm(c)[0].tensor, c.text("activation", ""), std::move(own))};
}

// The first dim moved after the batch's other dims.
value first_after_batch(value x) {
  if (x.rank() < 3) return x;
  ints permutation = axes_from(1, x.rank());
  permutation.insert(x.rank() - 2, 0);
  return x.transpose(permutation);
}

variables import_fused_matmul(node_context& c) {
  const value x = c.flag("transBatchA") ? first_after_batch(c.in(0)) : c.in(0),
              y = c.flag("transBatchB") ? first_after_batch(c.in(1)) : c.in(1);
  const value a = c.flag("transA") ? swap_last(x) : x, b = c.flag("transB") ? swap_last(y) : y;
  const float alpha = c.real("alpha", 1);
  const value out = matmul(a, b);
  return {alpha == 1 ? out : out * alpha};
}

}  // namespace

std::span<const op_importer> linear_importers() {
  static constexpr op_importer table[] = {
      {"", "Gemm", 1, import_gemm},
      {"", "MatMul", 1, import_matmul},
      {microsoft, "FusedGemm", 1, import_fused_gemm},
      {microsoft, "FusedMatMul", 1, import_fused_matmul},
      {microsoft, "TransposeMatMul", 1, import_fused_matmul},
  };
  return table;
}

}  // namespace kiln::onnx
