#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kiln/text/impl/jinja/value.hpp"

// Functions, methods, filters and tests as tables of rows.
namespace kiln::language::jinja {

/// The arguments of a call by the callee's parameters.
class bound {
 public:
  /// `parameters` are names between blanks, `?` after those that may lack and `*` last where more may follow.
  bound(std::string_view function, std::string_view parameters, const arguments&);

  bool has(std::size_t i) const { return given_[i]; }
  const value& operator[](std::size_t i) const { return values_[i]; }
  value get(std::size_t i, value otherwise) const { return has(i) ? values_[i] : otherwise; }
  bool flag(std::size_t i) const { return has(i) && is_true(values_[i]); }
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  /// A string argument; throws `error` for another type.
  const std::string& text(std::size_t i) const;
  const arguments& all() const { return all_; }

 private:
  static constexpr std::size_t most = 6;
  std::string_view function_;
  const arguments& all_;
  std::array<value, most> values_;
  std::array<bool, most> given_{};
};

/// A function of the language; `self` is the object of a method, the operand of a filter or test.
struct native {
  std::string_view name, parameters;
  value (*call)(interpreter&, const value& self, const bound&);
};

/// A native with the object it belongs to.
struct bound_native : object {
  bound_native(const native& f, value of) : function(f), self(of) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  value call(interpreter& in, const arguments& a) override {
    return function.call(in, self, bound(function.name, function.parameters, a));
  }
  const native& function;
  value self;
};

/// Rows of one file each.
std::span<const native> text_filters();
std::span<const native> number_filters();
std::span<const native> sequence_filters();
std::span<const native> selection_filters();
std::span<const native> dict_filters();
std::span<const native> tests();
std::span<const native> global_functions();
std::span<const native> string_methods();
std::span<const native> split_methods();
std::span<const native> string_class_methods();
std::span<const native> list_methods();
std::span<const native> tuple_methods();
std::span<const native> dict_methods();

/// The row of a filter or test, or null.
const native* find_filter(std::string_view name);
const native* find_test(std::string_view name);
/// The method of a string, list or dict, or null.
const native* find_method(const value& of, std::string_view name);

}  // namespace kiln::language::jinja
