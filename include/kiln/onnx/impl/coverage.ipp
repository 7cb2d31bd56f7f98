#include "kiln/onnx/coverage.hpp"

#include <algorithm>
#include <map>

#include "kiln/onnx/impl/rows.hpp"

namespace kiln::onnx {

std::vector<importable_operator> importable_operators() {
  std::map<std::pair<std::string_view, std::string_view>, importable_operator> found;
  for (const auto family : row_families())
    for (const row& r : family) {
      const std::string_view domain = r.domain.empty() ? std::string_view("ai.onnx") : r.domain;
      importable_operator& o = found[{domain, r.op_type}];
      o.domain = domain;
      o.op_type = r.op_type;
      if (r.function)
        o.since.push_back(r.since);
      else
        o.ended = r.since;
      if (!r.note.empty() && std::find(o.notes.begin(), o.notes.end(), r.note) == o.notes.end())
        o.notes.push_back(r.note);
    }
  std::vector<importable_operator> out;
  for (auto& [name, o] : found) {
    std::sort(o.since.begin(), o.since.end());
    out.push_back(std::move(o));
  }
  return out;
}

}  // namespace kiln::onnx
