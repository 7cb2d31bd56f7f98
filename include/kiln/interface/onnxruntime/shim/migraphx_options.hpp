#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kiln/interface/onnxruntime/shim/abi.hpp"

namespace kiln::onnxruntime {

/// The struct's members that differ from their defaults, as the plugin's options. Values that no program means, which
/// is what a struct of another layout brings, are `invalid_argument` errors that name the member.
std::vector<std::pair<std::string, std::string>> options_of(const OrtMIGraphXProviderOptions& given);

}  // namespace kiln::onnxruntime
