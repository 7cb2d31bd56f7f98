#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/loop.hpp"
#include "kiln/text/impl/jinja/operators.hpp"

namespace kiln::language::jinja {
namespace {

// A macro with the scope in which it was defined.
struct macro_object : object {
  macro_object(const macro_statement& s, scope* o) : definition(s), outer(o) {}
  std::string_view type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  std::optional<value> attribute(interpreter& in, std::string_view name) override {
    if (name == "name") return in.text(definition.name);
    return std::nullopt;
  }
  value call(interpreter& in, const arguments& a) override { return in.call_macro(definition, outer, a); }
  const macro_statement& definition;
  scope* outer;
};

void capture(scope* s) {
  for (; s && !s->is_captured; s = s->outer) s->is_captured = true;
}

}  // namespace

void interpreter::write(std::string_view text) {
  if (out_->size() + text.size() > bounds_.output_bytes)
    raise(errc::limit, "a template writes at most " + std::to_string(bounds_.output_bytes) + " bytes");
  out_->append(text);
}

// What f writes.
template <class F> std::string interpreter::captured(F f) {
  struct redirect {
    redirect(std::string*& o, std::string* to) : out(o), before(std::exchange(o, to)) {}
    ~redirect() { out = before; }
    redirect(const redirect&) = delete;
    redirect& operator=(const redirect&) = delete;
    std::string*& out;
    std::string* before;
  };
  std::string text;
  const redirect guard(out_, &text);
  f();
  return text;
}

flow interpreter::execute(const body& b) {
  const deeper guard(*this);
  for (const statement* s : b) {
    step();
    at_ = s->at;
    const flow f = std::visit([&](const auto& n) { return exec(n); }, s->node);
    if (f != flow::normal) return f;
  }
  return flow::normal;
}

flow interpreter::exec(const value_output& s) {
  const value v = evaluate(s.of);
  if (v.is(kind::string))
    write(v.bytes());
  else
    write(to_text(v));
  return flow::normal;
}

flow interpreter::exec(const if_statement& s) {
  for (const auto& [test, inside] : s.branches)
    if (evaluate_condition(test)) return execute(inside);
  return execute(s.otherwise);
}

flow interpreter::exec(const for_statement& s) { return run_loop(s, scope_, evaluate(s.over), 0); }

bool interpreter::passes_filter(const for_statement& s, scope* outer, const value& item) {
  const in_scope guard(*this, new_scope(outer));
  assign(s.to, item);
  return evaluate_condition(s.filter);
}

flow interpreter::run_loop(const for_statement& s, scope* outer, const value& over, int depth) {
  const position at = at_;
  list_object* source = over.is(kind::list) ? over.list() : values.list(items_of(over)).list();
  auto* loop = values.make<loop_object>(s, outer, source, depth);
  scope* inside = nullptr;
  while (loop->advance(*this)) {
    step();
    if (!inside || inside->is_captured)
      inside = new_scope(outer);
    else
      inside->names.clear();
    const in_scope guard(*this, inside);
    inside->set("loop", static_cast<object*>(loop));
    at_ = at;
    assign(s.to, loop->current());
    if (execute(s.inside) == flow::leave) return flow::normal;
  }
  if (loop->index() >= 0 || s.otherwise.empty()) return flow::normal;
  const in_scope guard(*this, new_scope(outer));
  return execute(s.otherwise);
}

value interpreter::run_loop_again(const for_statement& s, scope* outer, const value& over, int depth) {
  return text(captured([&] { run_loop(s, outer, over, depth); }));
}

void interpreter::assign(const target& to, const value& v) {
  if (!to.parts.empty()) {
    const std::vector<value> items = items_of(v);
    if (items.size() != to.parts.size())
      fail("expected " + std::to_string(to.parts.size()) + " values to unpack, found " + std::to_string(items.size()));
    for (std::size_t i = 0; i < items.size(); ++i) assign(to.parts[i], items[i]);
    return;
  }
  if (to.attribute.empty()) return scope_->set(to.name, v);
  const value of = lookup(to.name);
  auto* names = of.is(kind::object) ? dynamic_cast<name_space*>(of.other()) : nullptr;
  if (!names) fail("expected a namespace() before '." + to.attribute + "', found '" + std::string(type_name(of)) + "'");
  names->attributes->set(text(to.attribute), v);
}

flow interpreter::exec(const set_statement& s) { return assign(s.to, evaluate(s.to_value)), flow::normal; }

value interpreter::apply(const std::vector<named_call>& filters, value to) {
  for (const named_call& f : filters) to = filter(f.name, to, evaluate_arguments(f.arguments));
  return to;
}

flow interpreter::exec(const set_block& s) {
  value v;
  {
    const in_scope guard(*this, new_scope(scope_));
    v = apply(s.filters, text(captured([&] { execute(s.inside); })));
  }
  assign(s.to, v);
  return flow::normal;
}

flow interpreter::exec(const filter_block& s) {
  const in_scope guard(*this, new_scope(scope_));
  flow f = flow::normal;
  write(to_text(apply(s.filters, text(captured([&] { f = execute(s.inside); })))));
  return f;
}

flow interpreter::exec(const with_statement& s) {
  scope* inside = new_scope(scope_);
  std::vector<value> all;
  for (const auto& [to, e] : s.values) all.push_back(evaluate(e));  // in the outer scope
  const in_scope guard(*this, inside);
  for (std::size_t i = 0; i < all.size(); ++i) assign(s.values[i].first, all[i]);
  return execute(s.inside);
}

flow interpreter::exec(const scope_statement& s) {
  const in_scope guard(*this, new_scope(scope_));
  return execute(s.inside);
}

flow interpreter::exec(const macro_statement& s) {
  capture(scope_);
  scope_->set(s.name, static_cast<object*>(values.make<macro_object>(s, scope_)));
  return flow::normal;
}

flow interpreter::exec(const call_block& s) {
  capture(scope_);
  const auto& call_node = std::get<call_of>(s.call->node);
  const value callee = evaluate(call_node.callee);
  arguments a = evaluate_arguments(call_node.arguments);
  a.named.emplace_back("caller", static_cast<object*>(values.make<macro_object>(s.caller, scope_)));
  at_ = s.call->at;
  write(to_text(call(callee, a)));
  return flow::normal;
}

value interpreter::call_macro(const macro_statement& m, scope* outer, const arguments& a) {
  const position at = at_;
  const in_scope guard(*this, new_scope(outer));
  std::vector<bool> is_used(a.named.size());
  const auto named = [&](std::string_view name) -> const value* {
    for (std::size_t i = 0; i < a.named.size(); ++i)
      if (a.named[i].first == name) return is_used[i] = true, &a.named[i].second;
    return nullptr;
  };
  for (std::size_t i = 0; i < m.parameters.size(); ++i) {
    const auto& [name, otherwise] = m.parameters[i];
    const value* v = named(name);
    if (v && i < a.positional.size()) fail("macro '" + m.name + "' got two values for '" + name + "'");
    if (i < a.positional.size())
      scope_->set(name, a.positional[i]);
    else if (v)
      scope_->set(name, *v);
    else
      scope_->set(name,
                  otherwise ? evaluate(otherwise) : values.undefined("parameter '" + name + "' was not provided"));
  }
  if (m.takes_caller) {
    const value* v = named("caller");
    scope_->set("caller", v ? *v : values.undefined("No caller defined"));
  }
  at_ = at;
  if (m.takes_rest) {
    std::vector<value> rest;
    for (std::size_t i = m.parameters.size(); i < a.positional.size(); ++i) rest.push_back(a.positional[i]);
    scope_->set("varargs", values.tuple(std::move(rest)));
  } else if (a.positional.size() > m.parameters.size()) {
    fail("macro '" + m.name + "' takes not more than " + std::to_string(m.parameters.size()) + " argument(s)");
  }
  dict_object* rest = m.takes_named ? values.dict() : nullptr;
  for (std::size_t i = 0; i < a.named.size(); ++i) {
    if (is_used[i]) continue;
    if (!rest) fail("macro '" + m.name + "' takes no keyword argument '" + std::string(a.named[i].first) + "'");
    rest->set(text(std::string(a.named[i].first)), a.named[i].second);
  }
  if (rest) scope_->set("kwargs", rest);
  return text(captured([&] { execute(m.inside); }));
}

}  // namespace kiln::language::jinja
