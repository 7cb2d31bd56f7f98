#pragma once
#include "kiln/text/impl/jinja/interpreter.hpp"

namespace kiln::language::jinja {

/// What filters compare items by: the item or an attribute of it, text in lower case unless told otherwise.
struct key_of {
  interpreter& in;
  value attribute;  ///< none: the item itself
  bool is_case_sensitive = false;
  bool takes_several = false;  ///< attributes between commas
  value otherwise = value::none();
  value operator()(const value& item) const;
};

/// In the order of their keys; equal ones keep theirs.
std::vector<value> sorted(std::vector<value> items, const key_of& key, bool is_reversed);

}  // namespace kiln::language::jinja
