#pragma once
#include <functional>

#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// An operator of the caller's own, over MIGraphX's objects. Its computation runs in the host's memory.
struct custom_op {
  std::string name;
  /// The shape of the result.
  std::function<shape(const std::vector<shape>& inputs)> compute_shape;
  /// The result, which may be an operand that it has written to.
  std::function<argument(const shape& output, const std::vector<argument>& inputs)> compute;
  /// Which operands the result may be in; those are copies.
  std::function<std::vector<std::size_t>(const std::vector<shape>& inputs)> output_alias;
  /// Whether it expects the memory of a GPU, which kiln does not give it: compiling for a GPU is then an error.
  bool runs_on_offload_target = true;
};

/// Defines it for the life of the process. A name that is taken, and one without functions, is an `invalid_argument`
/// error.
void register_custom_op(custom_op op);

/// The names of a program's custom ops that expect the memory of a GPU.
std::vector<std::string> offloaded_custom_ops(const kiln::program& graph);

}  // namespace kiln::migraphx
