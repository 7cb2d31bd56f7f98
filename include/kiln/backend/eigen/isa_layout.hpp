#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/kernel/recurrent_problem.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {

/// What a kernel library and its callers have to agree on, as one number: sizes of what crosses the boundary, ops by
/// index with their sizes, and the version of the kernels.
constexpr std::uint64_t isa_layout() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t n) { hash = (hash ^ n) * 0x100000001b3u; };
  for (std::size_t n : {sizeof(isa_table),
                        sizeof(thread_pool),
                        sizeof(kernels::gemm_problem<float>),
                        sizeof(gemm_tail),
                        sizeof(kernels::affine_tail<float>),
                        sizeof(kernels::conv_problem),
                        sizeof(conv_tail),
                        sizeof(kernels::channel_prologue<float>),
                        sizeof(kernels::image_layout),
                        sizeof(kernels::attention_problem),
                        sizeof(kernels::pooling_problem),
                        sizeof(kernels::pooled_images),
                        sizeof(kernels::lrn_problem),
                        sizeof(kernels::recurrent_problem),
                        sizeof(op::recurrent),
                        sizeof(kernels::block_machine),
                        sizeof(kernels::block_step),
                        sizeof(kernels::block_frame),
                        sizeof(kernels::block_loop),
                        sizeof(kernels::block_rows),
                        sizeof(kernels::block_fetch),
                        sizeof(kernels::block_advance),
                        sizeof(kernels::pointwise_steps),
                        sizeof(kernels::fold_steps),
                        sizeof(kernels::move_steps)})
    add(n);
  const auto add_op = [&](std::string_view name, std::size_t size) {
    for (char c : name) add(static_cast<unsigned char>(c));
    add(size);
  };
  constexpr std::size_t ops = pointwise_ops::size + reduce_ops::size;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (add_op(type_name<default_registry::at<I>>(), sizeof(default_registry::at<I>)), ...);
  }
  (std::make_index_sequence<ops>{});
  add(kernel_version);
  return hash;
}

/// Raises an `unsupported` error where the table is of a library that was built from other headers than its callers.
void check_isa(const isa_table& table);

}  // namespace kiln::eigen
