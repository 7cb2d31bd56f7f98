#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/context.hpp"
#include "kiln/interface/onnxruntime/factory.hpp"
#include "kiln/interface/onnxruntime/graph.hpp"
#include "kiln/interface/onnxruntime/provider_options.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::onnxruntime {

/// The execution provider of one session: says which nodes kiln runs, and compiles them.
class provider : public OrtEp {
 public:
  provider(const factory& made_by, const OrtSessionOptions* session, const OrtLogger* logger);

 private:
  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  void compile_all(const OrtGraph** graphs, const OrtNode** fused, std::size_t count, OrtNodeComputeInfo** infos,
                   OrtNode** contexts);
  OrtNodeComputeInfo* compile_one(const OrtGraph* graph, const OrtNode* fused, OrtNode** context);
  executable compile_graph(graph_copy graph, const std::string& name) const;
  // Whether parts of a node's bodies are claimed: not where kiln runs the node as a whole.
  bool takes_parts_of_bodies(const OrtNode* node, const onnx::opsets& versions) const;

  const factory& factory_;
  const host& ort_;
  const OrtLogger* logger_;
  provider_options options_;
  context_settings contexts_;
  std::string compatibility_;
  std::unique_ptr<target> target_;
  compile_options compiling_;
};

}  // namespace kiln::onnxruntime
