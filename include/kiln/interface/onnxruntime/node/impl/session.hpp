#pragma once
#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln::node {

using texts_by_name = std::vector<std::pair<std::string, std::string>>;

/// The process's environment, made when the first session is; it stays until the process ends, as onnxruntime-node's
/// does.
Ort::Env& environment();

/// What a session is made of: a model's path or its bytes, which are read until the session is there; settings by the
/// names of `InferenceSession.SessionOptions`; and options of kiln's provider.
struct session_request {
  std::string path;
  std::span<const std::byte> bytes;
  texts_by_name settings, provider;
};
/// A session whose first provider is kiln's; ONNX Runtime's own takes what that leaves.
Ort::Session make_session(const session_request& from);

/// Applies the settings of a run, by the names of `InferenceSession.RunOptions`.
void apply(Ort::RunOptions& to, const texts_by_name& settings);

}  // namespace kiln::node
