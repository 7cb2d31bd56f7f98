#include "kiln/text/impl/jinja/native.hpp"

#include <initializer_list>
#include <unordered_map>

namespace kiln::language::jinja {
namespace {

using table = std::unordered_map<std::string_view, const native*>;

table table_of(std::initializer_list<std::span<const native>> all) {
  table t;
  for (const auto& rows : all)
    for (const native& row : rows) t.emplace(row.name, &row);
  return t;
}

const native* find(const table& t, std::string_view name) {
  const auto at = t.find(name);
  return at == t.end() ? nullptr : at->second;
}

}  // namespace

bound::bound(std::string_view function, std::string_view parameters, const arguments& a)
    : function_(function), all_(a) {
  std::size_t n = 0, matched = 0;
  bool takes_more = false;
  for (std::size_t begin = 0; begin < parameters.size();) {
    const std::size_t end = std::min(parameters.find(' ', begin), parameters.size());
    std::string_view name = parameters.substr(begin, end - begin);
    begin = end + 1;
    if (name == "*") {
      takes_more = true;
      continue;
    }
    const bool may_lack = name.ends_with('?');
    if (may_lack) name.remove_suffix(1);
    if (n < a.positional.size()) values_[n] = a.positional[n], given_[n] = true;
    for (const auto& [named, v] : a.named) {
      if (named != name) continue;
      if (given_[n]) fail(std::string(function) + "() got two values for '" + std::string(name) + "'");
      values_[n] = v, given_[n] = true;
      ++matched;
    }
    if (!given_[n] && !may_lack) fail(std::string(function) + "() lacks the argument '" + std::string(name) + "'");
    ++n;
  }
  if (takes_more) return;
  if (a.positional.size() > n)
    fail(std::string(function) + "() takes at most " + std::to_string(n) + " arguments, found " +
         std::to_string(a.positional.size()));
  if (matched < a.named.size()) {
    for (const auto& [named, v] : a.named)
      if ((" " + std::string(parameters) + " ").find(" " + std::string(named)) == std::string::npos)
        fail(std::string(function) + "() has no parameter '" + std::string(named) + "'");
    fail(std::string(function) + "() got an argument that it does not know");
  }
}

std::int64_t bound::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i) || (*this)[i].is(kind::none)) return otherwise;
  if (!(*this)[i].is_whole())
    fail(std::string(function_) + "(): expected an integer, found '" + std::string(type_name((*this)[i])) + "'");
  return (*this)[i].integer();
}

const std::string& bound::text(std::size_t i) const {
  if (!(*this)[i].is(kind::string))
    fail(std::string(function_) + "(): expected a string, found '" + std::string(type_name((*this)[i])) + "'");
  return (*this)[i].bytes();
}

const native* find_filter(std::string_view name) {
  static const table all =
      table_of({text_filters(), number_filters(), sequence_filters(), selection_filters(), dict_filters()});
  return find(all, name);
}

const native* find_test(std::string_view name) {
  static const table all = table_of({tests()});
  return find(all, name);
}

const native* find_method(const value& of, std::string_view name) {
  static const table of_strings = table_of({string_methods(), split_methods(), string_class_methods()});
  static const table of_lists = table_of({list_methods(), tuple_methods()}), of_tuples = table_of({tuple_methods()});
  static const table of_dicts = table_of({dict_methods()});
  switch (of.type()) {
    case kind::string: return find(of_strings, name);
    case kind::list: return find(of.list()->as == list_object::form::list ? of_lists : of_tuples, name);
    case kind::dict: return find(of_dicts, name);
    default: return nullptr;
  }
}

}  // namespace kiln::language::jinja
