#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {

interpreter::deeper::deeper(interpreter& i) : of(i) {
  if (++of.depth_ > of.bounds_.depth) {
    --of.depth_;
    raise(errc::limit, "expressions, statements and calls nest at most " + std::to_string(of.bounds_.depth) + " deep");
  }
}

void interpreter::step(std::size_t n) {
  steps_ += n;
  if (steps_ > bounds_.steps) raise(errc::limit, "a template runs at most " + std::to_string(bounds_.steps) + " steps");
}

value interpreter::evaluate(expr e) {
  step();
  const deeper guard(*this);
  at_ = e->at;
  return std::visit([&](const auto& n) { return eval(n, e->at); }, e->node);
}

value interpreter::lookup(const std::string& name) {
  for (scope* s = scope_; s; s = s->outer)
    if (const value* v = s->find(name)) return *v;
  return values.undefined("'" + name + "' is undefined");
}

value interpreter::eval(const display& n, position) {
  std::vector<value> items;
  items.reserve(n.items.size());
  for (expr e : n.items) items.push_back(evaluate(e));
  return n.is_tuple ? values.tuple(std::move(items)) : values.list(std::move(items));
}

value interpreter::eval(const dict_display& n, position at) {
  dict_object* d = values.dict();
  for (const auto& [key, v] : n.entries) {
    const value k = evaluate(key), of_key = evaluate(v);
    at_ = at;
    hash(k);  // throws where it can't be a key
    values.charge(2 * sizeof k);
    d->set(k, of_key);
  }
  return d;
}

value interpreter::eval(const unary& n, position at) {
  const value of = evaluate(n.of);
  at_ = at;
  if (n.op == unary_op::logical_not) return !is_true(of);
  if (of.is(kind::undefined)) fail_undefined(of);
  if (!of.is_number()) fail("bad operand type for unary sign: '" + std::string(type_name(of)) + "'");
  if (n.op == unary_op::negate) return negate(of);
  return of.is(kind::real) ? of : value(of.integer());
}

value interpreter::eval(const binary& n, position at) {
  const value left = evaluate(n.left), right = evaluate(n.right);
  at_ = at;
  return calculate(*this, n.op, left, right);
}

value interpreter::eval(const concatenation& n, position at) {
  std::string out;
  for (expr e : n.parts) out += to_text(evaluate(e));
  at_ = at;
  return text(std::move(out));
}

value interpreter::eval(const logical& n, position) {
  const value left = evaluate(n.left);
  return is_true(left) == n.is_or ? left : evaluate(n.right);
}

value interpreter::eval(const comparison& n, position at) {
  value left = evaluate(n.first);
  for (const auto& [op, e] : n.rest) {
    const value right = evaluate(e);
    at_ = at;
    if (!compare(*this, op, left, right)) return false;
    left = right;
  }
  return true;
}

value interpreter::eval(const conditional& n, position) {
  if (evaluate_condition(n.test)) return evaluate(n.then);
  if (n.otherwise) return evaluate(n.otherwise);
  return values.undefined("the condition of an 'if' without 'else' is false, so that it has no value");
}

value interpreter::eval(const attribute_of& n, position at) {
  const value of = evaluate(n.of);
  at_ = at;
  return attribute(of, n.name);
}

value interpreter::eval(const subscript& n, position at) {
  const value of = evaluate(n.of), key = evaluate(n.key);
  at_ = at;
  return item(of, key);
}

value interpreter::eval(const slice_of& n, position at) {
  const value of = evaluate(n.of);
  value bounds[3];
  const expr parts[] = {n.begin, n.end, n.step};
  for (int i = 0; i < 3; ++i) bounds[i] = parts[i] ? evaluate(parts[i]) : value::none();
  at_ = at;
  return slice(*this, of, bounds[0], bounds[1], bounds[2]);
}

arguments interpreter::evaluate_arguments(const call_arguments& c) {
  arguments a;
  a.positional.reserve(c.positional.size());
  for (expr e : c.positional) a.positional.push_back(evaluate(e));
  for (const auto& [name, e] : c.named) a.named.emplace_back(name, evaluate(e));
  if (c.rest_list)
    for (const value& v : items_of(evaluate(c.rest_list))) a.positional.push_back(v);
  if (!c.rest_dict) return a;
  const value rest = evaluate(c.rest_dict);
  if (!rest.is(kind::dict)) fail("expected a dict after '**', found '" + std::string(type_name(rest)) + "'");
  for (const auto& [key, v] : rest.dict()->entries) {
    if (!key.is(kind::string)) fail("expected strings as keys of the dict after '**'");
    a.named.emplace_back(key.bytes(), v);
  }
  return a;
}

value interpreter::eval(const call_of& n, position at) {
  const value callee = evaluate(n.callee);
  const arguments a = evaluate_arguments(n.arguments);
  at_ = at;
  return call(callee, a);
}

value interpreter::eval(const filtered& n, position at) {
  const value of = evaluate(n.of);
  const arguments a = evaluate_arguments(n.filter.arguments);
  at_ = at;
  return filter(n.filter.name, of, a);
}

value interpreter::eval(const tested& n, position at) {
  const value of = evaluate(n.of);
  const arguments a = evaluate_arguments(n.test.arguments);
  at_ = at;
  return test(n.test.name, of, a);
}

value interpreter::call(const value& callee, const arguments& a) {
  const deeper guard(*this);
  if (callee.is(kind::undefined)) fail_undefined(callee);
  if (!callee.is(kind::object)) fail("'" + std::string(type_name(callee)) + "' object is not callable");
  return callee.other()->call(*this, a);
}

value interpreter::filter(std::string_view name, const value& operand, const arguments& a) {
  const native* f = find_filter(name);
  if (!f) fail("there is no filter '" + std::string(name) + "'");
  step();
  return f->call(*this, operand, bound(name, f->parameters, a));
}

bool interpreter::test(std::string_view name, const value& operand, const arguments& a) {
  const native* t = find_test(name);
  if (!t) fail("there is no test '" + std::string(name) + "'");
  step();
  return is_true(t->call(*this, operand, bound(name, t->parameters, a)));
}

std::vector<value> interpreter::items_of(const value& v) {
  std::vector<value> items;
  switch (v.type()) {
    case kind::undefined: break;
    case kind::list: items = v.list()->items; break;
    case kind::dict:
      for (const auto& [key, of_key] : v.dict()->entries) items.push_back(key);
      break;
    case kind::string:
      for (std::size_t at = 0; at < v.bytes().size();) {
        const std::size_t begin = at;
        at = after_point(v.bytes(), at);
        items.push_back(text(v.bytes().substr(begin, at - begin)));
      }
      break;
    default: fail("'" + std::string(type_name(v)) + "' object is not iterable");
  }
  step(items.size() / 8);
  return items;
}

}  // namespace kiln::language::jinja
