#include "kiln/graph/impl/own_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kiln/graph/op_attributes.hpp"

namespace kiln {
namespace {

// What a struct has that is an op, by the concepts of op/concepts.hpp.
bool is_op(const std::string& body) {
  for (const char* const part :
       {"compute_shape(", "> maps(std::span", " map(const layout&", " operator()(T", " operator()(bool", " combine",
        " produce(std::span", " calls_bodies", "module_ref body"})
    if (body.find(part) != std::string::npos) return true;
  return false;
}

// Ops by the structs of their headers.
std::vector<std::string> named_in_headers() {
  // the programs that have these are made where their caches are
  const std::vector<std::string> of_caches = {"block_attention", "paged_attention"};
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KILN_SOURCE_DIR "/include/kiln/op")) {
    const std::string folder = entry.path().parent_path().filename().string();
    if (entry.path().extension() != ".hpp" || folder == "op" || folder == "impl") continue;
    std::ifstream file(entry.path());
    const std::string all{std::istreambuf_iterator<char>(file), {}}, begin = "\nstruct ";
    for (std::size_t at = all.find(begin); at != std::string::npos; at = all.find(begin, at + 1)) {
      const std::size_t end = all.find("\n};", at), brace = all.find(" {\n", at);
      if (brace >= end || !is_op(all.substr(brace, end - brace))) continue;
      const std::string name = all.substr(at + begin.size(), brace - at - begin.size());
      if (std::find(of_caches.begin(), of_caches.end(), name) == of_caches.end()) out.push_back(name);
    }
  }
  return out;
}

TEST(own_ops, are_those_of_the_headers) {
  const std::vector<std::string> names = named_in_headers();
  EXPECT_GT(names.size(), 150u);
  for (const std::string& name : names) EXPECT_NE(detail::find_own_op(name), nullptr) << name;
}

// All but those whose meaning is a module.
TEST(own_ops, are_made_by_name) {
  for (const std::string& name : named_in_headers()) {
    const op_table* const table = detail::find_own_op(name);
    if (!table || table->kind == op_kind::control || table->bodies) continue;
    try {
      EXPECT_EQ(make_operation(name).name(), name);
    } catch (const error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace kiln
