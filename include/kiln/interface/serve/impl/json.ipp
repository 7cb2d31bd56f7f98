#include "kiln/interface/serve/impl/json.hpp"

#include <cmath>
#include <vector>

namespace kiln::serve {

namespace {

// A value as an error shows it.
std::string shown(const json& v) {
  if (v.is_structured()) return v.is_array() ? "an array" : "an object";
  std::string s = text_of(v);
  if (s.size() > 60) s = s.substr(0, 57) + "...";
  return s;
}

std::string shown(double v) {
  return v == std::floor(v) && std::abs(v) < 1e15 ? std::to_string(static_cast<std::int64_t>(v)) : std::to_string(v);
}

}  // namespace

std::string_view api_error::type() const {
  if (status_ == 401 || status_ == 403) return "authentication_error";
  if (status_ == 429) return "rate_limit_error";
  return status_ >= 500 ? "server_error" : "invalid_request_error";
}

std::string to_json(const api_error& e) {
  const auto or_null = [](const std::optional<std::string>& s) { return s ? json(*s) : json(nullptr); };
  return text_of(
      {{"error",
        {{"message", e.what()}, {"type", e.type()}, {"param", or_null(e.param())}, {"code", or_null(e.code())}}}});
}

http_reply reply_of(const api_error& e) {
  http_reply r;
  r.status = e.status();
  r.body = to_json(e);
  if (e.status() == 401) r.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (e.status() == 429 || e.status() == 503) r.headers.emplace_back("Retry-After", "1");
  return r;
}

json parse_value(std::string_view text, std::string_view path) {
  constexpr int most_deep = 64;
  constexpr std::size_t most_keys = 1024;
  std::vector<std::size_t> keys(most_deep + 2, 0);
  const auto fault = [&](const std::string& what, const char* code) {
    return path.empty() ? api_error("the body" + what, {}, code)
                        : api_error(std::string(path) + what, std::string(path), code);
  };
  try {
    return json::parse(text, [&](int depth, json::parse_event_t event, json&) {
      const bool begins = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
      if (begins && depth >= most_deep)
        throw fault(": values nest deeper than " + std::to_string(most_deep), "json_too_deep");
      if (begins) keys[static_cast<std::size_t>(depth) + 1] = 0;
      if (event == json::parse_event_t::key && ++keys[static_cast<std::size_t>(depth)] > most_keys)
        throw fault(": an object has more than " + std::to_string(most_keys) + " keys", "json_too_wide");
      return true;
    });
  } catch (const json::exception& e) {
    throw fault(std::string(" is no JSON: ") + e.what(), "invalid_json");
  }
}

json parse_body(std::string_view body, std::string_view path) {
  json out = parse_value(body, path);
  const std::optional<std::string> param = path.empty() ? std::nullopt : std::optional(std::string(path));
  if (!out.is_object())
    throw api_error(param.value_or("the body") + ": expected a JSON object, found " + shown(out), param);
  return out;
}

std::string text_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

fields::fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) throw api_error(path_ + ": expected an object, found " + shown(object), path_);
}

void fields::refuse(std::string_view name, const std::string& expected) const {
  const auto at = object_.find(name);
  const std::string path = path_of(name);
  throw api_error(path + ": expected " + expected + ", found " + (at == object_.end() ? "nothing" : shown(*at)), path);
}

const json* fields::get(std::string_view name) {
  known_.insert(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<bool> fields::flag(std::string_view name) {
  const json* const v = get(name);
  if (!v) return {};
  if (!v->is_boolean()) refuse(name, "true or false");
  return v->get<bool>();
}

std::optional<std::string> fields::text(std::string_view name) {
  const json* const v = get(name);
  if (!v) return {};
  if (!v->is_string()) refuse(name, "a string");
  return v->get<std::string>();
}

std::optional<double> fields::number(std::string_view name, double least, double most) {
  const json* const v = get(name);
  if (!v) return {};
  if (!v->is_number() || !(v->get<double>() >= least && v->get<double>() <= most))
    refuse(name, "a number from " + shown(least) + " to " + shown(most));
  return v->get<double>();
}

std::optional<std::int64_t> fields::whole(std::string_view name, std::int64_t least, std::int64_t most) {
  const json* const v = get(name);
  if (!v) return {};
  const bool fits = v->is_number_integer() &&
                    !(v->is_number_unsigned() &&
                      v->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || v->get<std::int64_t>() < least || v->get<std::int64_t>() > most)
    refuse(name, "a whole number from " + std::to_string(least) +
                     (most == std::numeric_limits<std::int64_t>::max() ? " on" : " to " + std::to_string(most)));
  return v->get<std::int64_t>();
}

void fields::end() const {
  for (const auto& [name, value] : object_.items())
    if (!known_.contains(name)) {
      const std::string path = path_of(name.size() > 60 ? name.substr(0, 57) + "..." : name);
      throw api_error("unknown field: " + path, path, "unknown_parameter");
    }
}

}  // namespace kiln::serve
