#include <nlohmann/json.hpp>

#include "kiln/runtime/impl/report/packed_by_kernel.hpp"
#include "kiln/runtime/report.hpp"

namespace kiln {
namespace {

using nlohmann::json;

json json_of(const std::vector<shape>& all) {
  json out = json::array();
  for (const shape& s : all) {
    json lens = json::array();
    for (const dimension d : s.lens) lens.push_back(d.is_constant() ? json(d.value()) : json(to_string(d)));
    out.push_back({{"type", to_string(s.type)}, {"dims", std::move(lens)}});
  }
  return out;
}

json steps_of(const compile_report& r) {
  json out = json::array();
  for (const step_info& s : r.steps)
    out.push_back({{"kernel", s.kernel},
                   {"instruction", s.instruction},
                   {"copy", s.copy},
                   {"fallback", s.fallback},
                   {"inputs", json_of(s.inputs)},
                   {"outputs", json_of(s.outputs)},
                   {"packed_bytes", s.packed_bytes},
                   {"group", s.group},
                   {"branch", s.branch}});
  return out;
}

json passes_of(const compile_report& r) {
  json out = json::array();
  for (const pass_note& note : r.passes) {
    json counts = json::object(), remarks = json::array();
    for (const auto& e : note.counts.entries) counts[std::string(e.name)] = e.count;
    for (const text& remark : note.remarks) remarks.push_back(remark.str());
    out.push_back({{"pass", note.pass}, {"applied", std::move(counts)}, {"remarks", std::move(remarks)}});
  }
  return out;
}

}  // namespace

std::string report_json(const compile_report& r) {
  const json out = {{"target", r.target},
                    {"steps", steps_of(r)},
                    {"passes", passes_of(r)},
                    {"remarks", r.remarks},
                    {"constant_bytes", r.constant_bytes},
                    {"packed_bytes", r.packed_bytes},
                    {"packed", detail::packed_by_kernel(r)},
                    {"optimize_ms", r.optimize_ms},
                    {"plan_ms", r.plan_ms}};
  return out.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace kiln
