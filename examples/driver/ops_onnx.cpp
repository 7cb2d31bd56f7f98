#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "json.hpp"
#include "kiln/onnx/coverage.hpp"
#include "onnx_results.hpp"
#include "options.hpp"

namespace kiln::driver {

namespace {

struct listed_operator {
  onnx::importable_operator known;
  onnx_result found;
};

std::vector<listed_operator> all_operators() {
  const auto results = onnx_results();
  std::vector<listed_operator> all;
  for (const auto& o : onnx::importable_operators()) {
    const auto found = results.find({o.domain, o.op_type});
    all.push_back({o, found == results.end() ? onnx_result{} : found->second});
  }
  return all;
}

std::string versions_of(const onnx::importable_operator& o) {
  std::string out = fmt::format("{}", fmt::join(o.since, ", "));
  if (o.ended) out += fmt::format(" (until {})", o.ended - 1);
  return out;
}

// The types, whole groups by one name.
std::string types_of(const onnx_result& r) {
  struct group {
    std::string_view name;
    std::vector<std::string_view> types;
  };
  static const group groups[] = {
      {"float", {"f64", "f32", "f16", "bf16"}},
      {"int", {"i8", "i16", "i32", "i64"}},
      {"uint", {"u8", "u16", "u32", "u64"}},
      {"bool", {"bool"}},
      {"narrow", {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2"}},
      {"string", {"string"}},
      {"complex", {"c64", "c128"}}};
  std::vector<std::string_view> out;
  for (const group& g : groups) {
    std::vector<std::string_view> there;
    for (const std::string_view t : g.types)
      if (std::find(r.types.begin(), r.types.end(), t) != r.types.end()) there.push_back(t);
    if (there.size() == g.types.size()) there = {g.name};
    out.insert(out.end(), there.begin(), there.end());
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

// The targets that have kernels for the operator; the reference computation serves where none has.
std::string targets_of(const onnx_result& r) {
  std::vector<std::string> out;
  for (const auto& [name, share] : {std::pair("eigen", r.eigen), std::pair("hip", r.hip)})
    if (share == "all" || share == "some") out.push_back(std::string(name) + (share == "some" ? " (some)" : ""));
  if (out.empty() && !r.eigen.empty()) out.push_back("reference");
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string cases_of(const onnx_result& r) { return r.cases ? fmt::format("{}/{}", r.passed, r.cases) : ""; }

void print_page(const std::vector<listed_operator>& all) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& o : all) ++counts[o.known.domain];
  fmt::print(
      "# ONNX operators\n\n"
      "Written by `kiln ops --onnx --markdown` from the importer's own table and from what its tests measure; tests "
      "compare all three.\n\n"
      "- **since**: versions of the operator set at which the import changes: those from there to the next number are "
      "imported by its rules.\n"
      "- **types**: element types with which the operator's data input imports (the first input that is no "
      "scalar, condition or list of indices). `float`: f64, f32, f16, bf16;\n"
      "  `int`: i8 to i64; `uint`: u8 to u64; `narrow`: float8 of five kinds, float4e2m1, int4, uint4, int2, uint2; "
      "`complex`: c64, c128.\n"
      "- **kernels**: targets that have kernels for all models of the operator that were asked, or some of them "
      "(other types, attributes or\n"
      "  data-dependent sizes). Elsewhere an op's reference computation runs on the CPU, and the compile report says "
      "so: every operator works\n"
      "  on every target.\n"
      "- **cases**: of ONNX's backend tests with the operator in them (1.12, and half of those of 1.23), how many "
      "pass, on the targets reference\n"
      "  and eigen alike. [The others](../test/onnx/excluded.tsv), with reasons.\n\n"
      "What a node needs beyond this page (an attribute's value, a rank that only a run knows) is reported when a "
      "model is imported, for all\n"
      "nodes at once. `kiln export MODEL --onnx FILE` writes programs back as ONNX.\n");
  std::string_view domain;
  for (const auto& [known, found] : all) {
    if (known.domain != domain) {
      domain = known.domain;
      fmt::print(
          "\n## {}: {} operators\n\n| operator | since | types | kernels | cases | notes "
          "|\n|---|---|---|---|---|---|\n",
          domain, counts[domain]);
    }
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", known.op_type, versions_of(known), types_of(found),
               targets_of(found), cases_of(found), fmt::join(known.notes, "; "));
  }
}

}  // namespace

int ops_onnx(listing how) {
  const std::vector<listed_operator> all = all_operators();
  if (how == listing::markdown) {
    print_page(all);
  } else if (how == listing::json) {
    json listed = json::array();
    for (const auto& [known, found] : all)
      listed.push_back({{"domain", known.domain},
                        {"operator", known.op_type},
                        {"since", known.since},
                        {"until", known.ended ? json(known.ended - 1) : json(nullptr)},
                        {"types", found.types},
                        {"kernels", {{"eigen", found.eigen}, {"hip", found.hip}}},
                        {"passed", found.passed},
                        {"cases", found.cases},
                        {"notes", known.notes}});
    print_json({{"operators", listed}});
  } else {
    for (const auto& [known, found] : all)
      fmt::print("{:26} {:36} {:18} {:>9}  {}\n", known.domain, known.op_type, versions_of(known), cases_of(found),
                 targets_of(found));
    fmt::print("{} operators\n", all.size());
  }
  return 0;
}

}  // namespace kiln::driver
