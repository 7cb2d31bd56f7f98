#include <cstdio>
#include <map>

#include "kiln/runtime/impl/report/packed_by_kernel.hpp"
#include "kiln/runtime/report.hpp"

namespace kiln {
namespace {

std::string joined(const std::vector<shape>& all) {
  std::string out;
  for (const shape& s : all) out += (out.empty() ? "" : ", ") + to_string(s);
  return out;
}

std::string with_one_decimal(double value) {
  char out[64];
  std::snprintf(out, sizeof out, "%.1f", value);
  return out;
}

}  // namespace

// Kernels that differ in what follows the product hold its weights alike.
std::map<std::string, std::size_t> detail::packed_by_kernel(const compile_report& r) {
  std::map<std::string, std::size_t> out;
  for (const step_info& s : r.steps) {
    if (s.packed_bytes == 0) continue;
    std::string name = s.kernel;
    if (const auto tail = name.find("+epilogue"); tail != std::string::npos) name.erase(tail, 9);
    out[name] += s.packed_bytes;
  }
  return out;
}

std::string plan_text(const compile_report& r) {
  std::string out;
  for (std::size_t i = 0; i < r.steps.size(); ++i) {
    const step_info& s = r.steps[i];
    const std::string number = std::to_string(i);
    out.append(number.size() < 4 ? 4 - number.size() : 0, ' ').append(number).append(" ").append(s.kernel);
    out += ": (" + joined(s.inputs) + ") -> (" + joined(s.outputs) + ") from " + s.instruction;
    if (s.group >= 0)
      out += ", beside others from " + std::to_string(s.group) + " on in branch " + std::to_string(s.branch);
    out += '\n';
  }
  return out;
}

std::string report_text(const compile_report& r) {
  std::string out;
  for (const pass_note& note : r.passes) {
    if (!note.changed()) continue;
    out.append(note.pass).append(":");
    for (const auto& e : note.counts.entries)
      out.append(" ").append(e.name).append(" ").append(std::to_string(e.count)).append("x");
    out += '\n';
  }
  for (const std::string& remark : r.remarks) out += remark + "\n";
  std::size_t copies = 0, fallbacks = 0;
  for (const step_info& s : r.steps) copies += s.copy, fallbacks += s.fallback;
  out += std::to_string(r.steps.size()) + " kernels, " + std::to_string(copies) + " of them copies, " +
         std::to_string(fallbacks) + " by the reference computation\n" + std::to_string(r.constant_bytes) +
         " bytes of constants as they are, " + std::to_string(r.packed_bytes) + " packed";
  const char* between = ": ";
  for (const auto& [name, bytes] : detail::packed_by_kernel(r)) {
    out += between + std::to_string(bytes) + " " + name;
    between = ", ";
  }
  return out + "\npasses " + with_one_decimal(r.optimize_ms) + " ms, plan and packing " + with_one_decimal(r.plan_ms) +
         " ms\n";
}

}  // namespace kiln
