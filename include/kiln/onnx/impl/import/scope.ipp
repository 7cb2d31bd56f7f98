#include "kiln/onnx/impl/import/scope.hpp"

#include "kiln/onnx/impl/import/rank_condition.hpp"
#include "kiln/onnx/impl/restored.hpp"

namespace kiln::onnx {

value module_frame::inside(value v, module_frame& home) {
  if (&home == this) return v;
  v = outer->inside(v, home);
  for (const auto& [outside, here] : captured)
    if (outside.id() == v.id()) return here;
  const auto& producer = outer->build.module().producer(v.id());
  value here;
  if (producer.kind == instruction_kind::literal) {
    here = build.constant(producer.constant);
  } else {
    here = build.input("captured." + std::to_string(captured.size()), v.type(), v.get_shape().lens);
    parameters.push_back(v);
  }
  captured.emplace_back(v, here);
  return here;
}

entry* scope::find(std::string_view name) {
  for (scope* s = this; s; s = s->outer)
    if (const auto found = s->entries.find(name); found != s->entries.end()) return &found->second;
  return nullptr;
}

entry& import_state::find(scope& in, std::string_view name) {
  entry* e = in.find(name);
  if (!e) raise(errc::malformed, "the name '" + std::string(name) + "' is defined nowhere");
  const tensor* t = std::exchange(e->initializer, nullptr);
  if (!t) return *e;
  if (!t->fault.empty()) {
    faults.add_unsupported("initializer '" + t->name + "'", {}, t->fault);
    e->is_lost = true;
    return *e;
  }
  builder& own = e->home->build;
  const value v = own.constant(t->value);
  own.module()[v.id().instruction].name = text(t->name);
  const restored here(frame, e->home);
  define_output(*e, t->name, v);
  return *e;
}

// A tensor that a Gradient node differentiates by is a value of its own, also where it is a constant or another name of
// a value: it does not fold into what reads it.
void import_state::define_output(entry& e, std::string_view name, variable v) {
  if (v.tensor && differentiated.contains(name)) {
    builder& own = v.tensor.owner();
    const restored unfolded(own.fold_constants, false);
    v = own.add(op::identity{}, v.tensor);
  }
  has_unknown_ranks = has_unknown_ranks || !v.possible_types.empty();
  e.held = std::move(v);
  e.home = frame;
}

variable import_state::read(const entry& e) {
  variable v = e.held;
  if (!e.home || e.home == frame) return v;
  const auto is_first = has_first_type(*this, e);
  if (v.tensor) v.tensor = frame->inside(v.tensor, *e.home);
  if (is_first) return narrowed(frame->build, v, {*is_first ? 0u : 1u});
  for (value& item : v.items) item = frame->inside(item, *e.home);
  return v;
}

void import_state::add_initializers(scope& in, const graph& g) {
  for (const tensor& t : g.initializers) {
    if (t.name.empty()) raise(errc::malformed, "an initializer has no name");
    if (!in.entries.emplace(t.name, entry{{}, in.home, &t}).second)
      raise(errc::malformed, "the name '" + t.name + "' is defined twice, the second time by an initializer");
  }
}

}  // namespace kiln::onnx
