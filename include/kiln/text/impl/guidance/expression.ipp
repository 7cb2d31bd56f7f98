#include "kiln/text/impl/guidance/expression.hpp"

#include <string>
#include <utility>

#include "kiln/text/impl/guidance/regular.hpp"

namespace kiln::language::guidance {

namespace {

void add_text(automaton& a, automaton::node from, automaton::node to, std::string_view text) {
  for (std::size_t k = 0; k < text.size(); ++k) {
    const automaton::node next = k + 1 == text.size() ? to : a.add_place();
    const auto byte = static_cast<std::uint8_t>(text[k]);
    a.places[from].edges.push_back({byte, byte, next});
    from = next;
  }
}

// RFC 8259, section 7: the short form where there is one.
std::string escaped(std::uint32_t c) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return std::string("\\u00") + (c < 16 ? '0' : '1') + "0123456789abcdef"[c % 16];
  }
}

// Terminals of '&', '~' and [lazy]; all of their texts are UTF-8.
regular combined(const expression& e) {
  regular first = regular_of(e.parts.front());
  if (e.what == expression::kind::shortest) return shortest(std::move(first));
  if (e.what == expression::kind::other) {
    expression one, all;
    one.what = expression::kind::characters, one.characters = {{0, last_code_point}};
    all.what = expression::kind::repeat, all.least = 0, all.most = unbounded, all.parts = {one};
    return difference(regular_of(all), first);
  }
  for (std::size_t k = 1; k < e.parts.size(); ++k) first = intersection(first, regular_of(e.parts[k]));
  return first;
}

automaton::node add_repeat(automaton& a, automaton::node from, const expression& e, spelling s) {
  const expression& part = e.parts.front();
  for (std::uint32_t k = 0; k < e.least; ++k) from = add_expression(a, from, part, s);
  const automaton::node out = a.add_place();
  if (e.most == unbounded) {
    a.add_free(from, out);
    a.add_free(add_expression(a, out, part, s), out);
    return out;
  }
  for (std::uint32_t k = e.least; k < e.most; ++k) {
    a.add_free(from, out);
    from = add_expression(a, from, part, s);
  }
  a.add_free(from, out);
  return out;
}

}  // namespace

void add_spelled(automaton& a, automaton::node from, automaton::node to, const code_ranges& characters, spelling s) {
  if (s == spelling::plain) return a.add_characters(from, to, characters);
  static const code_ranges special = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  a.add_characters(from, to, intersection(characters, negated(special)));
  for (const auto& [low, high] : intersection(characters, special))
    for (std::uint32_t c = low; c <= high; ++c) add_text(a, from, to, escaped(c));
}

automaton::node add_expression(automaton& a, automaton::node from, const expression& e, spelling s) {
  switch (e.what) {
    case expression::kind::characters: {
      const automaton::node out = a.add_place();
      add_spelled(a, from, out, e.characters, s);
      return out;
    }
    case expression::kind::sequence:
      for (const expression& part : e.parts) from = add_expression(a, from, part, s);
      return from;
    case expression::kind::choice: {
      const automaton::node out = a.add_place();
      for (const expression& part : e.parts) {
        // A place of its own: a repeat may add ways back to the place that it begins at.
        const automaton::node begin = a.add_place();
        a.add_free(from, begin);
        a.add_free(add_expression(a, begin, part, s), out);
      }
      return out;
    }
    case expression::kind::repeat: return add_repeat(a, from, e, s);
    case expression::kind::run: {
      const automaton::node out = a.add_place();
      automaton::node at = a.add_place();
      a.add_free(from, at), a.add_free(at, out);
      for (const expression& part : e.parts) {
        at = add_expression(a, at, part, s);
        const automaton::node next = a.add_place();  // a place of its own, as above
        a.add_free(at, next), a.add_free(from, next), a.add_free(next, out);
        at = next;
      }
      return out;
    }
    case expression::kind::both:
    case expression::kind::other:
    case expression::kind::shortest: return add_regular(a, from, combined(e));
  }
  return from;
}

}  // namespace kiln::language::guidance
