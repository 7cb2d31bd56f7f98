#pragma once
#include "kiln/onnx/node.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::onnx {

/// What a model is, in hashes of its parts: equal ones are of models that compute the same. Names of nodes, metadata
/// and the producer don't count; names of values do.
struct fingerprint {
  std::string graph;          ///< of nodes, declared inputs and outputs, types and shapes of initializers
  std::string weights;        ///< of the initializers' data
  std::string operator_sets;  ///< "ai.onnx 17, com.microsoft 1"
};

/// Reads every byte of the initializers once, with the pool's threads.
fingerprint fingerprint_of(const model& m, thread_pool& pool);

}  // namespace kiln::onnx
