#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kiln::language::detail {

/// What a model's `config.json` says, or the metadata of a GGUF file in its words. Errors are `malformed` with the
/// file and the key.
class facts {
 public:
  facts(nlohmann::json j, std::string name);

  bool has(std::string_view key) const;
  /// A whole number from `least` on that has to be there; or one that may be left out.
  std::int64_t whole(std::string_view key, std::int64_t least = 1) const;
  std::int64_t whole_or(std::string_view key, std::int64_t otherwise, std::int64_t least = 0) const;
  double real_or(std::string_view key, double otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::vector<double> numbers(std::string_view key) const;     ///< empty where there are none
  std::vector<std::string> texts(std::string_view key) const;  ///< empty where there are none
  std::optional<facts> part(std::string_view key) const;       ///< an object
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;
  [[noreturn]] void unsupported(std::string_view key, const std::string& what) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  nlohmann::json json_;
  std::string name_;
};

}  // namespace kiln::language::detail
