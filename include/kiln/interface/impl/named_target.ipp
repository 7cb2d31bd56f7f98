#include "kiln/interface/named_target.hpp"

#include <charconv>
#include <string>

#include "kiln/backend/reference/reference_target.hpp"
#if KILN_WITH_EIGEN
#include "kiln/backend/eigen/eigen_target.hpp"
#endif
#if KILN_WITH_HIP
#include "kiln/backend/hip/hip_target.hpp"
#endif

namespace kiln {

namespace {

constexpr std::pair<std::string_view, std::string_view> migraphx_names[] = {
    {"cpu", "eigen"}, {"gpu", "hip"}, {"ref", "reference"}};

}  // namespace

std::string_view migraphx_target_name(std::string_view own) {
  for (const auto& [name, known] : migraphx_names)
    if (known == own) return name;
  return own;
}

std::unique_ptr<target> named_target(std::string_view name, const compile_options& compiling) {
  for (const auto& [alias, own] : migraphx_names)
    if (alias == name) {
      name = own;
      break;
    }
  std::string known = "reference";
  if (name == "reference" && compiling.tune)
    raise(errc::invalid_argument, "tuning chooses kernels of the targets eigen and hip: found target 'reference'");
  if (name == "reference") return std::make_unique<reference_target>();
#if KILN_WITH_EIGEN
  known = "eigen, " + known;
  if (name == "eigen") return std::make_unique<eigen_target>();
#endif
#if KILN_WITH_HIP
  known += ", hip, hip:DEVICE, hip:ARCHITECTURE";
  hip_options options;
  if (name == "hip") return std::make_unique<hip_target>(options);
  if (name.starts_with("hip:") && name.size() > 4) {
    const std::string_view which = name.substr(4);
    const auto [end, fault] = std::from_chars(which.data(), which.data() + which.size(), options.device);
    if (fault != std::errc() || end != which.data() + which.size()) options.architecture = which;
    return std::make_unique<hip_target>(options);
  }
#endif
  raise(errc::not_found, "a target by its name: expected one of " + known + ", found '" + std::string(name) + "'");
}

}  // namespace kiln
