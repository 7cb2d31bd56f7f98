#pragma once
#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::testing {

// A product of 16-bit floats whose factors lie along the depth; its epilogue reads an element for each of the result
// where `adds`.
inline hip::gemm_problem product_of(std::int64_t rows, std::int64_t cols, std::int64_t depth, bool adds) {
  hip::gemm_problem p;
  p.type = dtype::f16, p.rows = rows, p.cols = cols, p.depth = depth;
  p.a = p.b = {hip::matrix_argument{nullptr, {0, 0}, depth, 1}, true, 8};
  p.steps.assign(adds ? 2 : 1, {0, 0, cols, 1});
  p.types.assign(p.steps.size(), dtype::f16), p.aligned.assign(p.steps.size(), 16);
  return p;
}

/// Why no kernels can be compiled here for an architecture; empty where they can.
inline std::string why_skipped(const std::string& architecture) {
  const std::string why = hip::why_not_compiled(hip::architecture::named(architecture));
  return why.empty() ? why : "NOT CHECKED: " + why;
}

/// An op over operands of some shapes, and what a family of kernels lowers it to.
struct lowered_op {
  using family = std::unique_ptr<kernel> (*)(const kernel_request&, const hip::context_pointer&);
  std::vector<shape> shapes;
  shape result;
  std::unique_ptr<kernel> made;
  lowered_op(family lower, const operation& op, std::vector<shape> operands, const hip::context_pointer& where)
      : shapes(std::move(operands)) {
    program p;
    small_vector<value_id> in;
    for (const shape& s : shapes) in.push_back(p.main().add_parameter("x" + std::to_string(in.size()), s));
    const value_id id = p.main().add(op, in);
    const auto n = shapes.size();
    result = p.main().shape_of(id);
    made = lower(
        {p, p.main(), p.main()[id.instruction], std::vector<const literal*>(n), std::vector<layout>(n), shapes}, where);
  }
  /// A dense operand or result at an address.
  static tensor at(std::byte* address, const shape& s) {
    ints lens;
    for (const dimension& d : s.lens) lens.push_back(d.value());
    return {address, s.type, lens, row_major(lens)};
  }
};

}  // namespace kiln::testing
