#pragma once
#include "onnx/control_models.hpp"
#include "onnx/edge_models.hpp"
#include "onnx/selection_models.hpp"
#include "onnx/sized_models.hpp"

/// All models whose control flow, sizes and lists are the run's.
namespace kiln::test {

inline std::vector<dynamic_model> dynamic_models() {
  std::vector<dynamic_model> out;
  for (auto family : {loop_models(), branch_models(), scan_models(), selection_models(), list_models(), sized_models(),
                      edge_models()})
    for (dynamic_model& m : family) out.push_back(std::move(m));
  return out;
}

}  // namespace kiln::test
