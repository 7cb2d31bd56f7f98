#include "cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "kiln/core/error.hpp"

namespace kiln::driver {

namespace fs = std::filesystem;

namespace {

std::optional<unsigned> number_between(std::string_view name, std::string_view before, std::string_view after) {
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  unsigned n = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), n);
  if (code != std::errc() || end != name.data() + name.size()) return {};
  return n;
}

// Entries of a folder called <before>N<after>, by N.
std::vector<fs::path> numbered(const fs::path& folder, std::string_view before, std::string_view after) {
  std::vector<std::pair<unsigned, fs::path>> found;
  for (const fs::directory_entry& e : fs::directory_iterator(folder))
    if (const auto n = number_between(e.path().filename().string(), before, after)) found.emplace_back(*n, e.path());
  std::sort(found.begin(), found.end());
  std::vector<fs::path> out;
  for (auto& [n, path] : found) out.push_back(std::move(path));
  return out;
}

}  // namespace

std::vector<test_case> find_cases(const std::vector<std::string>& folders) {
  std::vector<test_case> out;
  std::set<fs::path> seen;
  std::string wrong;
  for (const std::string& name : folders) {
    std::error_code code;
    const fs::path folder = fs::canonical(name, code);
    if (code || !fs::is_directory(folder)) {
      wrong += fmt::format("\n  {}: no such folder", name);
      continue;
    }
    if (!fs::is_regular_file(folder / "model.onnx")) {
      wrong += fmt::format("\n  {}: no model.onnx in it", name);
      continue;
    }
    if (!seen.insert(folder).second) continue;
    // the name as given, so that a link keeps its own
    fs::path own = fs::path(name).lexically_normal();
    if (own.filename().empty()) own = own.parent_path();
    if (own.filename() == "." || own.filename() == ".." || own.filename().empty()) own = folder;
    test_case c{own.filename().string(), folder, {}};
    for (const fs::path& set : numbered(folder, "test_data_set_", ""))
      if (fs::is_directory(set))
        c.sets.push_back({set.filename().string(), numbered(set, "input_", ".pb"), numbered(set, "output_", ".pb")});
    out.push_back(std::move(c));
  }
  if (!wrong.empty()) raise(errc::not_found, "not in backend-test layout:" + wrong);
  return out;
}

}  // namespace kiln::driver
