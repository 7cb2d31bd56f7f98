#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "json.hpp"
#include "kiln/onnx/coverage.hpp"
#include "options.hpp"

namespace kiln::driver {

namespace {

std::string versions_of(const onnx::importable_operator& o) {
  std::string out = fmt::format("{}", fmt::join(o.since, ", "));
  if (o.ended) out += fmt::format(" (until {})", o.ended - 1);
  return out;
}

void print_page(const std::vector<onnx::importable_operator>& all) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& o : all) ++counts[o.domain];
  fmt::print(
      "# ONNX operators\n\n"
      "Written by `kiln ops --onnx --markdown` from the importer's own table; a test compares the two. A number under "
      "\"since\" is a\n"
      "version of the operator set at which the import changes: the versions from there to the next number are "
      "imported by its rules.\n\n"
      "Every operator works on every target: where a target has no kernel for an op, the op's reference computation "
      "runs and the compile\n"
      "report says so. What a node needs beyond this page (an element type, a rank that only a run knows) is reported "
      "when a model is\n"
      "imported, for all nodes at once. `kiln export MODEL --onnx FILE` writes programs back as ONNX.\n");
  std::string_view domain;
  for (const auto& o : all) {
    if (o.domain != domain) {
      domain = o.domain;
      fmt::print("\n## {}: {} operators\n\n| operator | since |\n|---|---|\n", domain, counts[domain]);
    }
    fmt::print("| {} | {} |\n", o.op_type, versions_of(o));
  }
}

}  // namespace

int ops_onnx(listing how) {
  const std::vector<onnx::importable_operator> all = onnx::importable_operators();
  if (how == listing::markdown) {
    print_page(all);
  } else if (how == listing::json) {
    json listed = json::array();
    for (const auto& o : all)
      listed.push_back({{"domain", o.domain},
                        {"operator", o.op_type},
                        {"since", o.since},
                        {"until", o.ended ? json(o.ended - 1) : json(nullptr)}});
    print_json({{"operators", listed}});
  } else {
    for (const auto& o : all) fmt::print("{:26} {:36} {}\n", o.domain, o.op_type, versions_of(o));
    fmt::print("{} operators\n", all.size());
  }
  return 0;
}

}  // namespace kiln::driver
