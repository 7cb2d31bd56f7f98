#include "kiln/backend/hip/architecture.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"

namespace kiln::hip {

architecture architecture::named(std::string_view name) {
  architecture a;
  a.name = name;
  const auto digits = [&](std::size_t from) {
    bool all = name.size() > from;
    for (char c : name.substr(std::min(from, name.size())))
      all = all && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
    return all;
  };
  if (name.starts_with("gfx") && digits(3)) {
    a.on = platform::amd;
    const bool cdna = name.starts_with("gfx9");
    a.lanes = cdna ? 64 : 32;
    a.multiprocessors = cdna ? 104 : 40;
    a.shared_bytes = 64 * 1024;
    if (name == "gfx908" || name == "gfx90a" || name.starts_with("gfx94") || name.starts_with("gfx95"))
      a.matrices = matrix_unit::mfma;
    else if (name.starts_with("gfx11") || name.starts_with("gfx12"))
      a.matrices = matrix_unit::wmma;
    return a;
  }
  if (name.starts_with("sm_") && digits(3)) {
    a.on = platform::nvidia;
    a.multiprocessors = 132;
    int number = 0;
    for (char c : name.substr(3)) number = c >= '0' && c <= '9' ? number * 10 + (c - '0') : number;
    a.shared_bytes = number == 90 || number == 100 ? 227 * 1024 : 99 * 1024;
    a.chains = number >= 90;
    a.matrices = number == 90 ? matrix_unit::wgmma : number >= 80 ? matrix_unit::mma : matrix_unit::none;
    return a;
  }
  raise(fault::of(errc::unsupported, "an architecture of the HIP target", "gfx90a, gfx1030, sm_90 or the like", name));
}

std::size_t architecture::shared_bytes_apart(std::size_t bytes, std::int64_t blocks, int cluster) const {
  constexpr std::int64_t most_together = 4;
  constexpr std::size_t each = 1024;  // what a block takes beside its own
  const std::int64_t places = std::max(multiprocessors - (cluster > 1 ? 4 * cluster : 0), 1);
  const std::int64_t together = (blocks + places - 1) / places;
  if (!chains || together > most_together) return bytes;
  const std::size_t one_too_many = (shared_bytes + each) / static_cast<std::size_t>(together + 1);
  return std::max(bytes, std::min(one_too_many, shared_bytes));
}

architecture architecture::of(platform on, const device_facts& facts) {
  architecture a = named(facts.architecture);
  a.on = on;
  a.lanes = facts.lanes;
  a.multiprocessors = facts.multiprocessors;
  a.shared_bytes = facts.shared_bytes;
  return a;
}

}  // namespace kiln::hip
