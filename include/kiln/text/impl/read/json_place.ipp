#include "kiln/text/impl/read/json_place.hpp"

#include "kiln/core/error.hpp"

namespace kiln::language::detail {

void json_place::fail(const std::string& expected) const {
  constexpr std::size_t longest = 80;
  std::string found = value_->dump(-1, ' ', false, json::error_handler_t::replace);
  if (found.size() > longest) found = found.substr(0, longest) + "...";
  raise(errc::malformed, place_ + ": expected " + expected + ", found " + found);
}

std::optional<json_place> json_place::find(std::string_view key) const {
  if (!value_->is_object()) fail("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return json_place(*found, place_ + (place_.ends_with(": ") ? "" : ".") + std::string(key));
}
json_place json_place::at(std::string_view key) const {
  auto found = find(key);
  if (!found) fail("\"" + std::string(key) + "\"");
  return *std::move(found);
}
json_place json_place::at(std::size_t index) const {
  return json_place((*value_)[index], place_ + "[" + std::to_string(index) + "]");
}
std::size_t json_place::size() const {
  if (!value_->is_array()) fail("an array");
  return value_->size();
}

std::string json_place::text() const {
  if (!value_->is_string()) fail("a string");
  return value_->get<std::string>();
}
bool json_place::flag() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}
std::int64_t json_place::number(std::int64_t lowest, std::int64_t highest) const {
  const auto fits = [&] {
    if (!value_->is_number_integer()) return false;
    if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      return false;
    return value_->get<std::int64_t>() >= lowest && value_->get<std::int64_t>() <= highest;
  };
  if (!fits()) fail("an integer from " + std::to_string(lowest) + " to " + std::to_string(highest));
  return value_->get<std::int64_t>();
}

std::string json_place::text_or(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->text() : std::string(otherwise);
}
bool json_place::flag_or(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->flag() : otherwise;
}
std::optional<std::string> json_place::optional_text(std::string_view key) const {
  const auto found = find(key);
  return found ? std::optional(found->text()) : std::nullopt;
}

nlohmann::json parse_json(std::string_view name, std::string_view text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    raise(errc::malformed, std::string(name) + ": " + e.what());
  }
}

}  // namespace kiln::language::detail
