#pragma once
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "kiln/core/error.hpp"

namespace kiln::language::detail {

[[noreturn]] inline void refuse(const std::string& where, const std::string& what) {
  throw error(errc::malformed, where + ": " + what);
}
inline const char* kind_of(const nlohmann::json& j) { return j.type_name(); }

/// An object of the file whose keys are taken one by one; what is left over is a key that nobody knows.
class object {
 public:
  object(const nlohmann::json& j, std::string where) : json_(j), where_(std::move(where)) {
    if (!j.is_object()) refuse(where_, std::string("expected an object, found ") + kind_of(j));
  }
  ~object() = default;
  object(const object&) = delete;
  object& operator=(const object&) = delete;

  const nlohmann::json* take(const std::string& key) {
    seen_.insert(key);
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  std::string where(const std::string& key) const { return where_.empty() ? key : where_ + "." + key; }

  void text(const std::string& key, std::string& to) {
    if (const nlohmann::json* j = take(key)) to = text_of(*j, where(key));
  }
  template <class T> void whole(const std::string& key, T& to, double least = 0, double most = 9007199254740992.0) {
    if (const nlohmann::json* j = take(key)) to = static_cast<std::int64_t>(number_of(*j, where(key), least, most));
  }
  template <class F> void part(const std::string& key, F&& read) {
    if (const nlohmann::json* j = take(key)) {
      object inner(*j, where(key));
      read(inner);
      inner.finish();
    }
  }
  /// Keys that the file may have and nothing here depends on.
  void ignore(std::initializer_list<const char*> keys) { seen_.insert(keys.begin(), keys.end()); }
  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (!seen_.contains(key)) refuse(where(key), "unknown key");
  }
  const nlohmann::json& all() const { return json_; }

  static std::string text_of(const nlohmann::json& j, const std::string& where) {
    if (!j.is_string()) refuse(where, std::string("expected a string, found ") + kind_of(j));
    return j.get<std::string>();
  }
  static double number_of(const nlohmann::json& j, const std::string& where, double least, double most) {
    if (!j.is_number()) refuse(where, std::string("expected a whole number, found ") + kind_of(j));
    const double v = j.get<double>();
    if (v != std::floor(v)) refuse(where, "expected a whole number, found " + j.dump());
    if (!(v >= least && v <= most)) refuse(where, "the number " + j.dump() + " is out of range");
    return v;
  }

 private:
  const nlohmann::json& json_;
  std::string where_;
  std::set<std::string> seen_;
};

}  // namespace kiln::language::detail
