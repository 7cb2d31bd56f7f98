#include "report.hpp"

#include <fmt/format.h>

#include <map>

#include "kiln/graph/print.hpp"

namespace kiln::driver {

namespace {

std::string joined(const std::vector<shape>& all) {
  std::string out;
  for (const shape& s : all) out += (out.empty() ? "" : ", ") + to_string(s);
  return out;
}

// Kernels that differ in what follows the product hold its weights alike.
std::map<std::string, std::size_t> packed_by_kernel(const compile_report& r) {
  std::map<std::string, std::size_t> out;
  for (const step_info& s : r.steps) {
    if (s.packed_bytes == 0) continue;
    std::string name = s.kernel;
    if (const auto tail = name.find("+epilogue"); tail != std::string::npos) name.erase(tail, 9);
    out[name] += s.packed_bytes;
  }
  return out;
}

}  // namespace

std::string graph_text(const program& p) { return print(p).str(); }

std::string plan_text(const compile_report& r) {
  std::string out;
  for (std::size_t i = 0; i < r.steps.size(); ++i) {
    const step_info& s = r.steps[i];
    out +=
        fmt::format("{:4} {}: ({}) -> ({}) from {}", i, s.kernel, joined(s.inputs), joined(s.outputs), s.instruction);
    out += s.group < 0 ? "\n" : fmt::format(", beside others from {} on in branch {}\n", s.group, s.branch);
  }
  return out;
}

std::string report_text(const compile_report& r) {
  std::string out;
  for (const pass_note& note : r.passes) {
    if (!note.changed()) continue;
    out += fmt::format("{}:", note.pass);
    for (const auto& e : note.counts.entries) out += fmt::format(" {} {}x", e.name, e.count);
    out += '\n';
  }
  for (const std::string& remark : r.remarks) out += remark + "\n";
  std::size_t copies = 0, fallbacks = 0;
  for (const step_info& s : r.steps) copies += s.copy, fallbacks += s.fallback;
  out += fmt::format("{} kernels, {} of them copies, {} by the reference computation\n", r.steps.size(), copies,
                     fallbacks);
  out += fmt::format("{} bytes of constants as they are, {} packed", r.constant_bytes, r.packed_bytes);
  const char* between = ": ";
  for (const auto& [name, bytes] : packed_by_kernel(r)) {
    out += fmt::format("{}{} {}", between, bytes, name);
    between = ", ";
  }
  out += '\n';
  return out + fmt::format("passes {:.1f} ms, plan and packing {:.1f} ms\n", r.optimize_ms, r.plan_ms);
}

json packed_json(const compile_report& r) { return packed_by_kernel(r); }

json plan_json(const compile_report& r) {
  json out = json::array();
  for (const step_info& s : r.steps) {
    json inputs = json::array(), outputs = json::array();
    for (const shape& i : s.inputs) inputs.push_back(json_of(i));
    for (const shape& o : s.outputs) outputs.push_back(json_of(o));
    out.push_back({{"kernel", s.kernel},
                   {"instruction", s.instruction},
                   {"copy", s.copy},
                   {"fallback", s.fallback},
                   {"inputs", inputs},
                   {"outputs", outputs},
                   {"packed_bytes", s.packed_bytes},
                   {"group", s.group},
                   {"branch", s.branch}});
  }
  return out;
}

json passes_json(const compile_report& r) {
  json out = json::array();
  for (const pass_note& note : r.passes) {
    json counts = json::object(), remarks = json::array();
    for (const auto& e : note.counts.entries) counts[std::string(e.name)] = e.count;
    for (const text& remark : note.remarks) remarks.push_back(remark.str());
    out.push_back({{"pass", note.pass}, {"applied", counts}, {"remarks", remarks}});
  }
  return out;
}

}  // namespace kiln::driver
