#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::language::detail {

/// A value of a JSON file with its place in it, for errors that say both.
class json_place {
 public:
  using json = nlohmann::json;

  json_place(const json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const json& value() const { return *value_; }
  const std::string& place() const { return place_; }

  /// Throws `error` (`malformed`): "tokenizer.json: model.type: expected ..., found ...".
  [[noreturn]] void fail(const std::string& expected) const;

  /// The member; nothing where it is missing or null.
  std::optional<json_place> find(std::string_view key) const;
  /// The member, which must be there.
  json_place at(std::string_view key) const;
  json_place at(std::size_t index) const;
  std::size_t size() const;  ///< of an array

  std::string text() const;
  bool flag() const;
  std::int64_t number(std::int64_t lowest, std::int64_t highest) const;

  std::string text_or(std::string_view key, std::string_view otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::optional<std::string> optional_text(std::string_view key) const;

 private:
  const json* value_;
  std::string place_;
};

/// Parses a file of JSON. Throws `error` (`malformed`) with the name.
nlohmann::json parse_json(std::string_view name, std::string_view text);

}  // namespace kiln::language::detail
