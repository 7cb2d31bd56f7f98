#include "kiln/onnx/impl/importer.hpp"

#include <algorithm>

#include "kiln/onnx/impl/importer_scope.hpp"
#include "kiln/onnx/impl/order.hpp"
#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/onnx/impl/rows.hpp"
#include "kiln/op/dynamic/sequence.hpp"

namespace kiln::onnx {

namespace {

std::string domain_name(const node& n) { return n.domain.empty() ? "ai.onnx" : n.domain; }

std::size_t count_nodes(const std::vector<node>& nodes) {
  std::size_t n = nodes.size();
  for (const node& one : nodes)
    for (const attribute& a : one.attributes)
      for (const graph& body : a.graphs) n += count_nodes(body.nodes);
  return n;
}

}  // namespace

importer::importer(const model& source, const import_options& options, std::string place)
    : model_(source), options_(options), place_(std::move(place)) {
  main_.build.fold_constants = true;
  most_body_nodes_ = options_.max_nodes + 16 * count_nodes(model_.main.nodes);
  for (const function& f : model_.functions) most_body_nodes_ += 16 * count_nodes(f.nodes);
}

program importer::run() {
  const graph& g = model_.main;
  scope names;
  names.versions = &model_.versions, names.home = frame_;
  current_ = &names;
  frame_->build.module().name = text(g.name.empty() ? "main" : g.name);
  check_options();
  collect_differentiated(g);
  add_initializers(names, g);
  collect_given();
  add_inputs(names);
  std::vector<std::string_view> defined, wanted;
  for (const auto& [name, held] : names.names) defined.push_back(name);
  for (const value_info& o : g.outputs) wanted.push_back(o.name);
  if (g.outputs.empty()) raise(errc::malformed, "the graph has no outputs");
  import_nodes(names, g.nodes, execution_order(g.nodes, defined, wanted, &has_name, &names), wanted);
  for (const value_info& o : g.outputs) {
    const entry* e = find(names, o.name);
    if (e->lost) continue;
    value v = as_value(frame_->build, e->held);
    if (o.kind == value_kind::optional && v.type() != dtype::optional) v = frame_->build.add(op::make_optional{}, v);
    // a tensor of the rank that the run gives it
    if (o.kind != value_kind::optional && !e->held.either.empty())
      v = frame_->build.add(op::optional_get{dtype::optional, {}}, v);
    frame_->build.output(v, o.name);
  }
  report_missing();
  program out = main_.build.finish();
  for (module_graph& m : bodies_) out.add_module(std::move(m));
  out.main().compact();
  return out;
}

bool importer::has_name(const void* names, std::string_view name) {
  for (auto* s = static_cast<const scope*>(names); s; s = s->outer)
    if (s->names.contains(name)) return true;
  return false;
}

importer::entry* importer::find(scope& names, std::string_view name) {
  for (scope* s = &names; s; s = s->outer) {
    const auto found = s->names.find(name);
    if (found == s->names.end()) continue;
    entry& e = found->second;
    if (const tensor* t = std::exchange(e.waiting, nullptr)) {
      if (!t->fault.empty()) {
        give_up("initializer '" + t->name + "'", {}, t->fault);
        e.lost = true;
      } else {
        builder& own = s->home->build;
        e.held = own.constant(t->value);
        e.home = s->home;
        own.module()[e.held.tensor.id().instruction].name = text(t->name);
        e.held = kept_apart(t->name, e.held);
      }
    }
    return &e;
  }
  raise(errc::malformed, "the name '" + std::string(name) + "' is defined nowhere");
}

variable importer::named(std::string_view name) {
  if (!has_name(current_, name)) return {};
  const entry* e = find(*current_, name);
  return e->lost ? variable() : local(*e);
}

// The tensors by which Gradient nodes differentiate.
void importer::collect_differentiated(const graph& g) {
  for (const node& n : g.nodes)
    for (const attribute& a : n.attributes) {
      if (n.op_type == "Gradient" && (a.name == "xs" || a.name == "zs"))
        differentiated_.insert(a.texts.begin(), a.texts.end());
      for (const graph& body : a.graphs) collect_differentiated(body);
    }
}

// Such a tensor is a value of its own, also where it is a constant, or another name of something: it neither folds nor
// is what it is made of.
variable importer::kept_apart(std::string_view name, variable v) {
  if (!v.tensor || !differentiated_.contains(name)) return v;
  builder& own = v.tensor.owner();
  const restored unfolded(own.fold_constants, false);
  return own.add(op::identity{}, v.tensor);
}

void importer::define(scope& names, std::string_view name, variable v) {
  entry& e = names.names[name];
  e.held = std::move(v);
  e.home = frame_;
}

// A value of an enclosing module as a value of the reader's: a constant is one there too, another becomes a parameter
// of every module on the way.
value importer::inside(value v, frame& home, frame& reader) {
  if (&home == &reader) return v;
  v = inside(v, home, *reader.outer);
  for (const auto& [outside, here] : reader.captured)
    if (outside.id() == v.id()) return here;
  const auto& producer = reader.outer->build.module().producer(v.id());
  value here;
  if (producer.kind == instruction_kind::literal) {
    here = reader.build.constant(producer.constant);
  } else {
    here = reader.build.input("captured." + std::to_string(reader.captured.size()), v.type(), v.get_shape().lens);
    reader.parameters.push_back(v);
  }
  reader.captured.emplace_back(v, here);
  return here;
}

variable importer::local(const entry& e) {
  variable v = e.held;
  if (!e.home || e.home == frame_) return v;
  const auto first = known_first(e);
  if (v.tensor) v.tensor = inside(v.tensor, *e.home, *frame_);
  if (first) return of_types(frame_->build, v, {*first ? 0u : 1u});
  for (value& item : v.items) item = inside(item, *e.home, *frame_);
  return v;
}

void importer::add_initializers(scope& names, const graph& g) {
  for (const tensor& t : g.initializers) {
    if (t.name.empty()) raise(errc::malformed, "an initializer has no name");
    if (!names.names.emplace(t.name, entry{{}, nullptr, &t, false}).second)
      raise(errc::malformed, "the name '" + t.name + "' is defined twice, the second time by an initializer");
  }
}

std::int64_t importer::version_of(const scope& names, const node& n) const {
  for (const opsets* versions : {names.versions, &model_.versions})
    for (const auto& [domain, version] : *versions)
      if (domain == n.domain) return version;
  if (n.domain.empty()) raise(errc::malformed, "the model uses ai.onnx but imports no version of it");
  return 1;
}

const function* importer::find_function(const node& n) const {
  for (const function& f : model_.functions)
    if (f.name == n.op_type && f.domain == n.domain && f.overload == n.overload) return &f;
  return nullptr;
}

std::string importer::why_missing(const node& n, std::int64_t version) const {
  const std::int64_t oldest = oldest_version(n.domain, n.op_type);
  if (oldest > version) return "its importer serves versions from " + std::to_string(oldest) + " on";
  return oldest ? "its importer does not serve this version" : "no importer";
}

void importer::import_node(scope& names, const node& written, std::size_t position) {
  ++nodes_;
  if (names.caller && ++called_nodes_ > options_.max_nodes)
    exhausted("function calls add more nodes than the limit of " + std::to_string(options_.max_nodes));
  if (depth_ > 0 && ++body_nodes_ > most_body_nodes_)
    exhausted("bodies that are imported again and again have more nodes than the limit of " +
              std::to_string(most_body_nodes_));
  const restored no_bodies(bodies_here_, 0u);
  way_.push_back(static_cast<std::uint32_t>(position));
  const popped_at_end way(way_);
  node resolved;
  const node* n = &written;
  const bool refers = std::any_of(written.attributes.begin(), written.attributes.end(),
                                  [](const attribute& a) { return !a.reference.empty(); });
  if (refers && names.caller) {
    resolved = written;
    resolved.attributes.clear();
    for (const attribute& a : written.attributes) {
      const attribute* given = a.reference.empty() ? &a : nullptr;
      for (const auto* list : {&names.caller->attributes, &names.callee->defaults})
        for (const attribute& b : *list)
          if (!given && b.name == a.reference) given = &b;
      if (!given) continue;
      resolved.attributes.push_back(*given);
      resolved.attributes.back().name = a.name;
    }
    n = &resolved;
  }
  const std::string who = describe(*n, position);
  const std::int64_t version = version_of(names, *n);
  variables inputs;
  bool lost = false;
  for (const std::string& i : n->inputs) {
    if (i.empty()) {
      inputs.push_back({});
      continue;
    }
    const entry* e = find(names, i);
    lost = lost || e->lost;
    inputs.push_back(local(*e));
  }
  const row* user = find_row(options_.rows, n->domain, n->op_type, version);
  const bool is_users =
      std::any_of(options_.rows.begin(), options_.rows.end(), [&](const row& r) { return &r == user; });
  const function* f = is_users ? nullptr : find_function(*n);
  const std::string what = who + " of " + domain_name(*n) + " " + std::to_string(version);
  const std::size_t given_up = faults_.size();
  variables outputs;
  try {
    if (!f && !(user && user->function)) {
      give_up(what, inputs, why_missing(*n, version));
      lost = true;
    } else if (lost) {
      if (f) audit(f->versions.empty() ? model_.versions : f->versions, f->nodes, 0);
    } else {
      outputs = f ? call_function(*n, *f, inputs) : call_row(names, *n, *user, version, inputs);
    }
  } catch (error& e) {
    lost = true;
    if (e.code() == errc::unsupported) {
      give_up(what, inputs, e.what());
    } else {
      e.at_instruction(n->name).at_source(place_.empty() ? who : place_ + ", " + who);
      if (e.code() == errc::limit || e.code() == errc::internal) throw;
      faults_.broken.add(e);
      if (faults_.broken.full()) report_missing();
    }
  }
  lost = lost || faults_.size() != given_up;  // in a body or function
  for (std::size_t k = 0; k < n->outputs.size(); ++k) {
    const std::string& name = written.outputs[k];
    if (name.empty()) continue;
    const bool made = k < outputs.size() && outputs[k];
    ranks_open_ = ranks_open_ || (made && !outputs[k].either.empty());
    if (!made && !lost && !f)
      give_up(what, inputs, "output " + std::to_string(k) + " ('" + name + "') is not imported");
    entry& e = names.names[name];
    if (made)
      e.held = kept_apart(name, outputs[k]), e.home = frame_;
    else
      e.lost = true;
  }
}

variables importer::call_row(scope& names, const node& n, const row& r, std::int64_t version, const variables& inputs) {
  const restored here(current_, &names);
  frame_->build.label = text(n.name.empty() ? n.op_type + "_" + std::to_string(nodes_ - 1) : n.name);
  call c{frame_->build, n, version, inputs, this};
  return r.function(c);
}

variables importer::call_function(const node& n, const function& f, const variables& inputs) {
  if (depth_ >= options_.max_nesting)
    exhausted("function calls are nested deeper than the limit of " + std::to_string(options_.max_nesting));
  if (inputs.size() > f.inputs.size()) raise(errc::malformed, "the call has more inputs than function " + f.name);
  scope names;
  names.home = frame_;
  names.versions = f.versions.empty() ? &model_.versions : &f.versions;
  names.caller = &n;
  names.callee = &f;
  std::vector<std::string_view> defined, wanted;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    define(names, f.inputs[i], i < inputs.size() ? inputs[i] : variable());
    defined.push_back(f.inputs[i]);
  }
  for (std::size_t k = 0; k < f.outputs.size(); ++k)
    if (k < n.outputs.size() && !n.outputs[k].empty()) wanted.push_back(f.outputs[k]);
  const restored deeper(depth_, depth_ + 1);
  import_nodes(names, f.nodes, execution_order(f.nodes, defined, wanted, &has_name, &names), wanted);
  variables out;
  for (std::size_t k = 0; k < f.outputs.size(); ++k) {
    const bool read = k < n.outputs.size() && !n.outputs[k].empty();
    const entry* e = read ? find(names, f.outputs[k]) : nullptr;
    out.push_back(e && !e->lost ? local(*e) : variable());
  }
  return out;
}

void importer::audit(const opsets& versions, const std::vector<node>& nodes, std::size_t depth) {
  if (depth > options_.max_nesting) return;
  scope names;
  names.versions = &versions;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (find_function(nodes[k])) continue;
    const std::int64_t version = version_of(names, nodes[k]);
    const row* r = find_row(options_.rows, nodes[k].domain, nodes[k].op_type, version);
    if (!r || !r->function)
      give_up(describe(nodes[k], k) + " of " + domain_name(nodes[k]) + " " + std::to_string(version), {},
              why_missing(nodes[k], version));
  }
}

void importer::give_up(const std::string& what, const variables& inputs, const std::string& why) {
  std::string line = what;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    line += i ? ", " : " over ";
    line += inputs[i].tensor ? kiln::to_string(inputs[i].tensor.get_shape()) : inputs[i].is_sequence ? "sequence" : "-";
  }
  line += ": " + why;
  faults_.add_missing(std::move(line));
}

void importer::exhausted(std::string why) {
  spent_ = true;
  raise(errc::limit, std::move(why));
}

void importer::report_missing() const {
  const auto& missing = faults_.missing;
  if (!faults_.broken.empty()) faults_.broken.throw_all(place_, missing);
  if (missing.empty()) return;
  std::string all = std::to_string(missing.size()) + (missing.size() == 1 ? " part of the model cannot be imported:"
                                                                          : " parts of the model cannot be imported:");
  for (const std::string& line : missing) all += "\n  " + line;
  error e(errc::unsupported, all);
  throw e.at_source(place_);
}

}  // namespace kiln::onnx
