#include "kiln/generate/impl/families/facts.hpp"

#include <cmath>

#include "kiln/core/error.hpp"

namespace kiln::language::detail {

using nlohmann::json;

facts::facts(json j, std::string name) : json_(std::move(j)), name_(std::move(name)) {
  if (!json_.is_object()) throw error(errc::malformed, name_ + ": expected an object, found " + json_.type_name());
}
void facts::refuse(std::string_view key, const std::string& what) const {
  throw error(errc::malformed, name_ + ": " + std::string(key) + ": " + what);
}
void facts::unsupported(std::string_view key, const std::string& what) const {
  throw error(errc::unsupported, name_ + ": " + std::string(key) + ": " + what);
}
const json* facts::find(std::string_view key) const {
  const auto at = json_.find(key);
  return at == json_.end() || at->is_null() ? nullptr : &*at;
}
bool facts::has(std::string_view key) const { return find(key) != nullptr; }

std::int64_t facts::whole(std::string_view key, std::int64_t least) const {
  if (!has(key)) refuse(key, "expected a whole number, found none");
  return whole_or(key, 0, least);
}
std::int64_t facts::whole_or(std::string_view key, std::int64_t otherwise, std::int64_t least) const {
  const json* j = find(key);
  if (!j) return otherwise;
  constexpr double most = 1 << 30;
  const double v = j->is_number() ? j->get<double>() : std::nan("");
  if (!(v >= static_cast<double>(least) && v <= most && v == std::floor(v)))
    refuse(key, "expected a whole number from " + std::to_string(least) + " to 1073741824, found " +
                    j->dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40));
  return static_cast<std::int64_t>(v);
}
double facts::real_or(std::string_view key, double otherwise) const {
  const json* j = find(key);
  if (!j) return otherwise;
  if (!j->is_number() || !std::isfinite(j->get<double>()))
    refuse(key, std::string("expected a number, found ") + j->type_name());
  return j->get<double>();
}
bool facts::flag_or(std::string_view key, bool otherwise) const {
  const json* j = find(key);
  if (!j) return otherwise;
  if (!j->is_boolean()) refuse(key, std::string("expected true or false, found ") + j->type_name());
  return j->get<bool>();
}
std::string facts::text_or(std::string_view key, std::string_view otherwise) const {
  const json* j = find(key);
  if (!j) return std::string(otherwise);
  if (!j->is_string()) refuse(key, std::string("expected a string, found ") + j->type_name());
  return j->get<std::string>();
}
std::vector<double> facts::numbers(std::string_view key) const {
  std::vector<double> out;
  const json* j = find(key);
  if (!j) return out;
  if (!j->is_array()) refuse(key, std::string("expected a list of numbers, found ") + j->type_name());
  for (const json& v : *j) {
    if (!v.is_number()) refuse(key, std::string("expected a list of numbers, found ") + v.type_name());
    out.push_back(v.get<double>());
  }
  return out;
}
std::vector<std::string> facts::texts(std::string_view key) const {
  std::vector<std::string> out;
  const json* j = find(key);
  if (!j) return out;
  if (!j->is_array()) refuse(key, std::string("expected a list of strings, found ") + j->type_name());
  for (const json& v : *j) {
    if (!v.is_string()) refuse(key, std::string("expected a list of strings, found ") + v.type_name());
    out.push_back(v.get<std::string>());
  }
  return out;
}
std::optional<facts> facts::part(std::string_view key) const {
  const json* j = find(key);
  if (!j) return std::nullopt;
  return facts(*j, name_ + ": " + std::string(key));
}

}  // namespace kiln::language::detail
