#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// Runs an op's own reference computation: what the reference target is made of, and what serves any op for which a
/// target has no kernel.
std::unique_ptr<kernel> make_fallback_kernel(const operation& op);

/// An op's results for whole arguments, through its own shape rule and computation.
small_vector<argument> evaluate_op(const operation& op, std::span<const argument> in);

/// Runs a fused body instruction by instruction through the ops' reference computations.
std::unique_ptr<kernel> make_body_kernel(const module_graph& body);

/// Runs a kernel of the host in a program for a device: operands are copied to the host's memory, results back.
std::unique_ptr<kernel> make_kernel_on_host(std::unique_ptr<kernel> of_host);

/// Copies operand 0 to result 0, both of any strides.
std::unique_ptr<kernel> make_copy_kernel();

/// Copies between any two layouts with equal dims and dtype; a null pool runs on the calling thread.
void copy_tensor(const tensor& from, const tensor& to, thread_pool* pool);

}  // namespace kiln
