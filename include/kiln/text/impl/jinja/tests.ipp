#include <cmath>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

template <kind k> value is_kind(in_t&, const value& v, const bound&) { return v.is(k); }

value is_defined(in_t&, const value& v, const bound&) { return !v.is(kind::undefined); }
value is_true_itself(in_t&, const value& v, const bound&) { return v.is(kind::boolean) && v.integer() != 0; }
value is_false_itself(in_t&, const value& v, const bound&) { return v.is(kind::boolean) && v.integer() == 0; }
value is_number(in_t&, const value& v, const bound&) { return v.is_number(); }

// Undefined values have a length and can be iterated over, as in Jinja.
value is_sequence(in_t&, const value& v, const bound&) {
  if (v.is(kind::list)) {
    using form = list_object::form;
    return v.list()->as == form::list || v.list()->as == form::tuple || v.list()->as == form::range;
  }
  return v.is(kind::string) || v.is(kind::dict) || v.is(kind::undefined);
}
value is_iterable(in_t&, const value& v, const bound&) {
  return v.is(kind::list) || v.is(kind::string) || v.is(kind::dict) || v.is(kind::undefined);
}
value is_callable(in_t&, const value& v, const bound&) {
  return v.is(kind::undefined) || (v.is(kind::object) && v.other()->is_callable());
}

value rest_of(in_t& in, const value& v, std::int64_t by) { return calculate(in, arithmetic::modulo, v, value(by)); }
value is_odd(in_t& in, const value& v, const bound&) { return equal(rest_of(in, v, 2), value(std::int64_t{1})); }
value is_even(in_t& in, const value& v, const bound&) { return equal(rest_of(in, v, 2), value(std::int64_t{0})); }
value is_divisible(in_t& in, const value& v, const bound& a) {
  return equal(calculate(in, arithmetic::modulo, v, a[0]), value(std::int64_t{0}));
}

template <comparing op> value compares(in_t& in, const value& v, const bound& a) { return compare(in, op, v, a[0]); }

value is_same(in_t&, const value& v, const bound& a) {
  if (v.type() != a[0].type()) return false;
  switch (v.type()) {
    case kind::list: return v.list() == a[0].list();
    case kind::dict: return v.dict() == a[0].dict();
    case kind::object: return v.other() == a[0].other();
    default: return equal(v, a[0]);
  }
}

// Whether there are letters with case, all of one.
template <bool (*is_one)(std::uint32_t), bool (*is_other)(std::uint32_t)>
value cased(in_t&, const value& v, const bound&) {
  const std::string text = to_text(v);
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t p = next_point(text, at);
    if (is_other(p)) return false;
    found = found || is_one(p);
  }
  return found;
}

value is_filter(in_t&, const value& v, const bound&) { return v.is(kind::string) && find_filter(v.bytes()) != nullptr; }
value is_test(in_t&, const value& v, const bound&) { return v.is(kind::string) && find_test(v.bytes()) != nullptr; }
value is_escaped(in_t&, const value&, const bound&) { return false; }

constexpr native rows[] = {
    {"defined", "", is_defined},
    {"undefined", "", is_kind<kind::undefined>},
    {"none", "", is_kind<kind::none>},
    {"boolean", "", is_kind<kind::boolean>},
    {"true", "", is_true_itself},
    {"false", "", is_false_itself},
    {"integer", "", is_kind<kind::integer>},
    {"float", "", is_kind<kind::real>},
    {"number", "", is_number},
    {"string", "", is_kind<kind::string>},
    {"mapping", "", is_kind<kind::dict>},
    {"sequence", "", is_sequence},
    {"iterable", "", is_iterable},
    {"callable", "", is_callable},
    {"odd", "", is_odd},
    {"even", "", is_even},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", compares<comparing::equal>},
    {"equalto", "other", compares<comparing::equal>},
    {"==", "other", compares<comparing::equal>},
    {"ne", "other", compares<comparing::not_equal>},
    {"!=", "other", compares<comparing::not_equal>},
    {"lt", "other", compares<comparing::less>},
    {"lessthan", "other", compares<comparing::less>},
    {"<", "other", compares<comparing::less>},
    {"le", "other", compares<comparing::less_equal>},
    {"<=", "other", compares<comparing::less_equal>},
    {"gt", "other", compares<comparing::greater>},
    {"greaterthan", "other", compares<comparing::greater>},
    {">", "other", compares<comparing::greater>},
    {"ge", "other", compares<comparing::greater_equal>},
    {">=", "other", compares<comparing::greater_equal>},
    {"in", "seq", compares<comparing::in>},
    {"sameas", "other", is_same},
    {"lower", "", cased<is_lower, is_upper>},
    {"upper", "", cased<is_upper, is_lower>},
    {"filter", "", is_filter},
    {"test", "", is_test},
    {"escaped", "", is_escaped},
};

}  // namespace

std::span<const native> tests() { return rows; }

}  // namespace kiln::language::jinja
