#include "kiln/interface/gpus.hpp"

#include "kiln/interface/named_target.hpp"
#if KILN_WITH_HIP
#include "kiln/backend/hip/runtime.hpp"
#endif

namespace kiln {

#if KILN_WITH_HIP
namespace {

std::vector<gpu_description> list_gpus() {
  std::vector<gpu_description> out;
  for (const hip::platform p : {hip::platform::amd, hip::platform::nvidia}) {
    const int count = hip::device_count(p);
    for (int i = 0; i < count; ++i) {
      hip::device_facts facts;
      hip::find_runtime(p)->describe(i, facts);
      const bool amd = p == hip::platform::amd;
      out.push_back({std::move(facts.name), amd ? 0x1002u : 0x10DEu, amd ? "AMD" : "NVIDIA"});
    }
    if (count > 0) break;  // the platform that targets take
  }
  return out;
}

}  // namespace
#endif

gpu_source hip_gpus() {
  gpu_source out;
#if KILN_WITH_HIP
  out.list = list_gpus;
#else
  out.list = [] { return std::vector<gpu_description>(); };
#endif
  out.make = [](int index, const compile_options& compiling) {
    return named_target("hip:" + std::to_string(index), compiling);
  };
  return out;
}

}  // namespace kiln
