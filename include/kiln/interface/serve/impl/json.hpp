#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kiln/interface/serve/http.hpp"

namespace kiln::serve {

/// JSON whose keys keep the order they were written in, as schemas need it.
using json = nlohmann::ordered_json;

/// Reads a value at most 64 values deep and with at most 1024 keys in an object, since work on either grows with its
/// square or the stack. Errors: `api_error` 400, with the path of the field whose text it is, else of the body.
json parse_value(std::string_view text, std::string_view path = {});
/// Reads a request's body, which is an object. Errors: as above.
json parse_body(std::string_view body, std::string_view path = {});
/// JSON as text; bytes that are no UTF-8 are replaced.
std::string text_of(const json& j);

/// Reads the fields of an object; null is as if a field were not there. Errors name the field's path: `api_error` 400.
class fields {
 public:
  explicit fields(const json& object, std::string path = {});
  const json* get(std::string_view name);
  std::optional<bool> flag(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::int64_t> whole(std::string_view name, std::int64_t least,
                                    std::int64_t most = std::numeric_limits<std::int64_t>::max());
  /// Fields that have no effect.
  void ignore(std::initializer_list<std::string_view> names) { known_.insert(names.begin(), names.end()); }
  /// An error for a field that nobody asked for.
  void end() const;
  std::string path_of(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  [[noreturn]] void refuse(std::string_view name, const std::string& expected) const;

 private:
  const json& object_;
  std::string path_;
  std::set<std::string_view> known_;
};

}  // namespace kiln::serve
