#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/generate/option_info.hpp"
#include "kiln/runtime/option_row.hpp"

namespace kiln::language::detail {

inline constexpr double unbounded = 9007199254740992.0;  // whole numbers up to here are exact as doubles

/// A row of a table of options that are flags and numbers: one of the four members is set.
template <class Options> struct number_row {
  std::string_view name;
  bool Options::*flag = nullptr;
  std::int64_t Options::*count = nullptr;
  std::optional<std::int64_t> Options::*piece = nullptr;  ///< 0 and less: unset
  double Options::*number = nullptr;
  double least = 0, most = unbounded;
};

/// A table of options by name; `what` names them in errors: "search option".
template <class Options> class number_options {
 public:
  constexpr number_options(std::string_view what, std::span<const number_row<Options>> rows)
      : what_(what), rows_(rows) {}

  std::vector<option_name> names() const {
    std::vector<option_name> out;
    for (const auto& r : rows_) out.push_back({r.name, r.flag != nullptr});
    return out;
  }
  void set_number(Options& to, std::string_view name, double value) const {
    const auto& r = find(name);
    if (r.flag) refuse(r, "true or false", kiln::detail::write_number(value));
    if (!(value >= r.least && value <= r.most)) refuse(r, bounds(r), kiln::detail::write_number(value));
    if (r.number) {
      to.*r.number = value;
      return;
    }
    if (value != std::floor(value)) refuse(r, "a whole number", kiln::detail::write_number(value));
    const auto whole = static_cast<std::int64_t>(value);
    if (r.count)
      to.*r.count = whole;
    else if (whole > 0)
      to.*r.piece = whole;
    else
      (to.*r.piece).reset();
  }
  void set_flag(Options& to, std::string_view name, bool value) const {
    const auto& r = find(name);
    if (!r.flag) refuse(r, "a number", value ? "true" : "false");
    to.*r.flag = value;
  }
  double get_number(const Options& from, std::string_view name) const {
    const auto& r = find(name);
    if (r.flag) refuse(r, "to be read as true or false", "a request for a number");
    if (r.number) return from.*r.number;
    return static_cast<double>(r.count ? from.*r.count : (from.*r.piece).value_or(0));
  }
  bool get_flag(const Options& from, std::string_view name) const {
    const auto& r = find(name);
    if (!r.flag) refuse(r, "to be read as a number", "a request for true or false");
    return from.*r.flag;
  }
  /// Fields may have been set without their names.
  void check_bounds(const Options& options) const {
    Options checked;
    for (const auto& r : rows_)
      if (!r.flag) set_number(checked, r.name, get_number(options, r.name));
  }

 private:
  const number_row<Options>& find(std::string_view name) const {
    for (const auto& r : rows_)
      if (r.name == name) return r;
    std::string all;
    for (const auto& r : rows_) all += (all.empty() ? "" : ", ") + std::string(r.name);
    throw error(errc::not_found, "no " + std::string(what_) + " '" + std::string(name) + "'; there are " + all);
  }
  static std::string bounds(const number_row<Options>& r) {
    using kiln::detail::write_number;
    if (r.most != unbounded) return write_number(r.least) + " to " + write_number(r.most);
    return r.least == -unbounded ? "a number" : "at least " + write_number(r.least);
  }
  [[noreturn]] void refuse(const number_row<Options>& r, const std::string& expected, const std::string& found) const {
    throw error(errc::invalid_argument,
                std::string(what_) + " '" + std::string(r.name) + "': expected " + expected + ", found " + found);
  }

  std::string_view what_;
  std::span<const number_row<Options>> rows_;
};

}  // namespace kiln::language::detail
