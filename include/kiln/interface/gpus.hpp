#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kiln/runtime/executable.hpp"

namespace kiln {

/// A GPU of this machine.
struct gpu_description {
  std::string name;          ///< the product's
  std::uint32_t vendor = 0;  ///< its PCI number
  std::string vendor_name;
};

/// Where GPUs come from: which there are, and targets for them by their index.
struct gpu_source {
  std::function<std::vector<gpu_description>()> list;
  std::function<std::unique_ptr<target>(int index, const compile_options& compiling)> make;
};

/// Those that HIP finds; none in a build without HIP.
gpu_source hip_gpus();

}  // namespace kiln
