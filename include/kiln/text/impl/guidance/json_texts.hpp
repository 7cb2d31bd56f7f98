#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/impl/guidance/automaton.hpp"
#include "kiln/text/impl/guidance/expression.hpp"

namespace kiln::language::guidance {

/// Builds the paths of JSON's texts: each function adds one from a place on and gives the place after it. Where JSON
/// allows white space around `{ } [ ] ,` there may be one space, or a line's end and up to 40 spaces; after `:` one
/// space.
class json_texts {
 public:
  using node = automaton::node;

  explicit json_texts(automaton& a) : a_(a) {}

  node text(node from, std::string_view bytes);
  /// A plain pattern.
  node pattern(node from, std::string_view pattern);
  node call(node from, std::uint32_t rule);
  node blank(node from);
  /// A string of characters that an expression matches.
  node string(node from, const expression& content);
  node string(node from, std::uint32_t least, std::uint32_t most);
  /// Any string but those.
  node string_other_than(node from, const std::vector<std::string>& names);
  node number(node from) { return pattern(from, "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]{1,2})?"); }
  node integer(node from) { return pattern(from, "-?(0|[1-9][0-9]*)"); }

  struct property {
    std::string name_text;  ///< as a JSON string
    std::uint32_t value;    ///< a rule
    bool required;
  };
  /// An object: the properties in their order, then others; `others` is the rule of their values, `names` what they
  /// are not called, or `named` what they are; `least` to `most` in all.
  node object(node from, const std::vector<property>& properties, std::optional<std::uint32_t> others,
              const std::vector<std::string>& names, const expression* named = nullptr, std::uint32_t least = 0,
              std::uint32_t most = unbounded);
  /// An array: `first` are the rules of its first elements, `others` that of all later ones.
  node array(node from, const std::vector<std::uint32_t>& first, std::uint32_t others, std::uint32_t least,
             std::uint32_t most);
  /// An array of some of these texts of values, each once at most.
  node distinct(node from, const std::vector<std::string>& values, std::uint32_t least, std::uint32_t most);
  /// The rule of all values.
  std::uint32_t any();

 private:
  automaton& a_;
  std::optional<std::uint32_t> any_, blank_, string_;
};

}  // namespace kiln::language::guidance
