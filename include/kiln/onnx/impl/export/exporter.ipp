#include "kiln/onnx/impl/export/exporter.hpp"

#include <algorithm>
#include <unordered_set>

#include "kiln/core/impl/dimension_table.hpp"
#include "kiln/core/object.hpp"
#include "kiln/onnx/element.hpp"
#include "kiln/onnx/impl/export/release.hpp"
#include "kiln/onnx/impl/export/stored_weights.hpp"
#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/value_message.hpp"
#include "kiln/op/dynamic/sequence.hpp"
#include "kiln/op/index/bit_cast.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/pass/expand_block_dequantize.hpp"
#include "kiln/pass/expand_sampling.hpp"
#include "kiln/pass/sink_dequantize.hpp"

namespace kiln::onnx {

namespace {

constexpr std::size_t most_bytes = (std::size_t{1} << 31) - (std::size_t{1} << 20);

const op_exporter* find_export(std::string_view op) {
  for (const auto table : {export_same(), export_pointwise(), export_reductions(), export_index(), export_layers(),
                           export_dynamic(), export_recurrence()})
    for (const op_exporter& x : table)
      if (x.op == op) return &x;
  return nullptr;
}

}  // namespace

using attribute_proto = onnx_proto::AttributeProto;

attribute_proto& exporter::node_writer::add(std::string_view name, attribute_proto::AttributeType type) {
  auto& a = *node_.add_attribute();
  a.set_name(std::string(name));
  a.set_type(type);
  return a;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, std::int64_t v) {
  add(name, attribute_proto::INT).set_i(v);
  return *this;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, float v) {
  add(name, attribute_proto::FLOAT).set_f(v);
  return *this;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, std::string_view v) {
  add(name, attribute_proto::STRING).set_s(std::string(v));
  return *this;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, std::span<const std::int64_t> v) {
  add(name, attribute_proto::INTS).mutable_ints()->Add(v.begin(), v.end());
  return *this;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, std::span<const float> v) {
  add(name, attribute_proto::FLOATS).mutable_floats()->Add(v.begin(), v.end());
  return *this;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, const names& v) {
  add(name, attribute_proto::STRINGS).mutable_strings()->Add(v.begin(), v.end());
  return *this;
}
exporter::node_writer& exporter::node_writer::set(std::string_view name, const literal& v) {
  set_tensor(*add(name, attribute_proto::TENSOR).mutable_t(), argument(v));
  return *this;
}
exporter::node_writer& exporter::node_writer::set_type(std::string_view name, content_type v) {
  onnx_proto::TypeProto* type = add(name, attribute_proto::TYPE_PROTO).mutable_tp();
  if (v.in_sequence) type = type->mutable_sequence_type()->mutable_elem_type();
  type->mutable_tensor_type()->set_elem_type(static_cast<int>(to_element(v.type)));
  return *this;
}
onnx_proto::GraphProto& exporter::node_writer::set_graph(std::string_view name) {
  return *add(name, attribute_proto::GRAPH).mutable_g();
}

exporter::node_writer& exporter::node_writer::of_domain(std::string_view domain) {
  node_.set_domain(std::string(domain));
  auto& imports = *owner_.model_.mutable_opset_import();
  if (std::none_of(imports.begin(), imports.end(), [&](const auto& i) { return i.domain() == domain; })) {
    auto& own = *owner_.model_.add_opset_import();
    own.set_domain(std::string(domain));
    own.set_version(domain == "ai.onnx.ml" ? ml_version : 1);  // com.microsoft has one version
  }
  return *this;
}

std::string exporter::fresh(std::string_view what) {
  return prefix_ + std::string(what) + "_" + std::to_string(count_++);
}

exporter::node_writer exporter::write(std::string_view op, const names& in, const names& out) {
  auto& node = *graph_->add_node();
  node.set_op_type(std::string(op));
  for (const std::string& i : in) node.add_input(i);
  for (const std::string& o : out) node.add_output(o);
  return node_writer(*this, node);
}
std::string exporter::make(std::string_view op, const names& in) {
  std::string out = fresh(op);
  write(op, in, {out});
  return out;
}

std::string exporter::constant(const literal& l, std::string_view of, std::string_view what) {
  if (l.has_symbols()) {
    const auto values = l.to<dimension>();
    const std::string all = reshaped(dimensions({values.data(), values.size()}), l.get_shape().lens);
    return l.get_shape().type == dtype::i64 ? all : cast(all, l.get_shape().type);
  }
  auto& tensor = *graph_->add_initializer();
  set_tensor(tensor, argument(l));
  const std::string name = std::string(of).append(what);
  tensor.set_name(!of.empty() && taken_.insert(name).second ? name : fresh("constant"));
  return tensor.name();
}
std::string exporter::integers(std::span<const std::int64_t> v) {
  return constant(literal::of<std::int64_t>(shape{dtype::i64, {static_cast<std::int64_t>(v.size())}}, v));
}

// i64[1] of one dimension. A symbol is read from the shape of a value that has it as an extent, or from elements that
// bind it.
std::string exporter::dimension_name(dimension d) {
  namespace ex = kiln::detail::expressions;
  if (const auto known = dims_.find(d.raw()); known != dims_.end()) return known->second;
  const auto joined = [&](const std::string& a, std::string_view op, const std::string& b) {
    return a.empty() ? b : make(op, {a, b});
  };
  std::string name;
  if (d.is_constant()) {
    const std::int64_t one[] = {d.value()};
    name = integers(one);
  } else if (is_symbol(d)) {
    name = symbol_value(d);
  } else {
    for (const ex::term& t : ex::get(d)) {
      std::string product;
      if (t.coefficient != 1 || t.factors.empty()) product = dimension_name(t.coefficient);
      for (const ex::atom_id f : t.factors) {
        const ex::atom a = ex::get_atom(f);
        std::string factor;
        if (a.op == 's') {
          factor = dimension_name(ex::of_atom(a));
        } else {
          const std::string_view op = a.op == '/' ? "Div" : a.op == '%' ? "Mod" : a.op == 'm' ? "Min" : "Max";
          factor = make(op, {dimension_name(a.lhs), dimension_name(a.rhs)});
        }
        product = joined(product, "Mul", factor);
      }
      name = joined(name, "Add", product);
    }
  }
  dims_named_.push_back(d.raw());
  return dims_[d.raw()] = name;
}
std::string exporter::dimensions(std::span<const dimension> v) {
  bool known = true;
  std::vector<std::int64_t> numbers;
  for (const dimension d : v) {
    known = known && d.is_constant();
    numbers.push_back(d.is_constant() ? d.value() : 0);
  }
  if (known) return integers(numbers);
  names parts;
  for (const dimension d : v) parts.push_back(dimension_name(d));
  if (parts.size() == 1) return parts[0];
  std::string out = fresh("shape");
  write("Concat", parts, {out}).set("axis", std::int64_t{0});
  return out;
}
std::string exporter::cast(const std::string& x, dtype to) {
  std::string out = fresh("cast");
  write("Cast", {x}, {out}).set("to", static_cast<std::int64_t>(to_element(to)));
  return out;
}
std::string exporter::reshaped(const std::string& x, const dims& to) {
  std::string out = fresh("reshaped");
  write("Reshape", {x, dimensions({to.data(), to.size()})}, {out}).set("allowzero", std::int64_t{1});
  return out;
}
std::string exporter::expanded(const std::string& x, const dims& to) {
  return make("Expand", {x, dimensions({to.data(), to.size()})});
}

void exporter::write_instruction(const exported& e) {
  const op_exporter* found = find_export(e.op.name());
  const std::string name(e.op.name());
  if (!found) {
    missing_.emplace(name, "no ONNX operator in version " + std::to_string(operator_set));
    return;
  }
  try {
    found->write(*this, e);
  } catch (const error& why) {
    if (why.code() != errc::unsupported) throw;
    missing_.emplace(name, why.what());
  }
}

void exporter::write_module(const module_graph& m, std::map<std::uint64_t, std::string>& held,
                            const std::string& prefix) {
  prefix_ = prefix;
  const stored_readers stored(m, form_ != quantized_form::qdq);
  for (const std::uint32_t at : m.order()) {
    const auto& i = m[at];
    if (stored.skips(at)) continue;
    const std::uint32_t* const numbers = stored.of_reader(at);
    if (i.kind == instruction_kind::parameter) continue;
    if (i.kind == instruction_kind::literal) {
      const dtype type = i.results[0].type;
      const bool is_container = type == dtype::sequence || type == dtype::optional;
      held[value_key({at, 0})] =
          is_container ? object_constant(argument(i.constant), content_of(m, {at, 0})) : constant(i.constant);
      continue;
    }
    exported e{i.op, {}, {}, i.results, {}, &m, at, &held};
    for (const value_id v : i.inputs) {
      e.in.push_back(numbers && stored.skips(v.instruction) ? "" : held.at(value_key(v)));
      e.types.push_back(m.shape_of(v));
    }
    for (std::uint32_t k = 0; k < i.results.size(); ++k) {
      const auto wanted = &m == &program_.main() ? named_.find(value_key({at, k})) : named_.end();
      e.out.push_back(wanted == named_.end() ? fresh(i.op.name()) : wanted->second);
    }
    if (const auto* fused = i.op.get_if<op::fused>()) {
      const module_graph& body = program_.module(fused->body);
      std::map<std::uint64_t, std::string> inner;
      const auto parameters = body.parameters();
      for (std::size_t k = 0; k < parameters.size(); ++k) inner[value_key(parameters[k])] = e.in[k];
      write_module(body, inner, prefix);
      for (std::size_t k = 0; k < body.outputs.size(); ++k) e.out[k] = inner.at(value_key(body.outputs[k]));
    } else if (numbers) {
      write_stored(e, *numbers);
    } else if (!write_blocks(e) && (form_ != quantized_form::qoperator || !write_quantized_operator(*this, e))) {
      write_instruction(e);
    }
    for (std::uint32_t k = 0; k < e.out.size(); ++k) {
      held[value_key({at, k})] = e.out[k];
      learn_extents(e.out[k], i.results[k]);
    }
  }
}

namespace {

// Names that nodes read, those of bodies included; bodies may read what is outside.
void add_read_names(const onnx_proto::NodeProto& node, std::unordered_set<std::string>& read) {
  read.insert(node.input().begin(), node.input().end());
  for (const auto& a : node.attribute()) {
    if (!a.has_g()) continue;
    for (const auto& inner : a.g().node()) add_read_names(inner, read);
    for (const auto& out : a.g().output()) read.insert(out.name());
  }
}
// Keeps the elements of a list that a predicate chose, in order.
template <class List> void keep_chosen(List& list, const std::vector<bool>& chosen) {
  int kept = 0;
  for (int k = 0; k < list.size(); ++k)
    if (chosen[static_cast<std::size_t>(k)]) list.SwapElements(kept++, k);
  list.DeleteSubrange(kept, list.size() - kept);
}

}  // namespace

void exporter::drop_unused() {
  std::unordered_set<std::string> read;
  for (const auto& o : graph_->output()) read.insert(o.name());
  auto& nodes = *graph_->mutable_node();
  std::vector<bool> chosen(static_cast<std::size_t>(nodes.size()), false);
  for (int k = nodes.size(); k-- > 0;) {
    const auto& out = nodes[k].output();
    chosen[static_cast<std::size_t>(k)] =
        std::any_of(out.begin(), out.end(), [&](const std::string& name) { return read.contains(name); });
    if (chosen[static_cast<std::size_t>(k)]) add_read_names(nodes[k], read);
  }
  keep_chosen(nodes, chosen);
  auto& constants = *graph_->mutable_initializer();
  std::size_t bytes = 0;
  chosen.clear();
  for (const auto& c : constants) {
    chosen.push_back(read.contains(c.name()));
    if (chosen.back()) bytes += c.raw_data().size();
  }
  if (bytes > most_bytes) raise(errc::limit, "an ONNX message ends at 2 GiB; the program's constants take more");
  keep_chosen(constants, chosen);
}

void exporter::need(dtype t) {
  if (release_of(t).operators <= operators_) return;
  operators_ = release_of(t).operators;
  format_ = release_of(t).format;
}

onnx_proto::ModelProto exporter::run() {
  const module_graph& m = program_.main();
  model_.set_producer_name("kiln");
  operators_ = operator_set;
  format_ = format_version;
  for (std::uint32_t r = 0; r < program_.modules(); ++r) {
    const module_graph& part = program_.module({r});
    for (std::uint32_t i = 0; i < part.size(); ++i) {
      if (part[i].op.is<op::bit_cast>()) operators_ = 26, format_ = 13;
      if (quantizes_words(part, part[i])) need(dtype::i4);
      for (const shape& s : part[i].results) need(s.type);
    }
  }
  auto* const standard = model_.add_opset_import();
  graph_ = model_.mutable_graph();
  graph_->set_name(std::string(std::string_view(m.name)));
  std::map<std::uint64_t, std::string> held;
  std::string prefix = "kiln_";
  const auto taken = [&](std::string_view name) { return name.starts_with(prefix); };
  for (const value_id p : m.parameters())
    while (taken(m.producer(p).name)) prefix += "_";
  for (const text& name : m.output_names)
    while (taken(name)) prefix += "_";
  prefix_ = prefix;
  for (const value_id p : m.parameters()) {
    const std::string name(std::string_view(m.producer(p).name));
    const shape& s = m.shape_of(p);
    declare(*graph_->add_input(), name, s, is_object(s.type) ? content_of(m, p) : content_type());
    held[value_key(p)] = name;
    learn_extents(name, s);
  }
  // Identity does not take sequences of maps: a result that is an output has the output's name, once
  for (std::size_t k = 0; k < m.outputs.size(); ++k)
    if (const auto& made = m.producer(m.outputs[k]); made.kind == instruction_kind::op && !made.op.is<op::fused>())
      named_.try_emplace(value_key(m.outputs[k]), std::string_view(m.output_names[k]));
  write_module(m, held, prefix);
  if (!missing_.empty()) {
    std::string all = std::to_string(missing_.size()) + " kinds of op cannot be written as ONNX:";
    for (const auto& [op, why] : missing_) all += "\n  " + op + ": " + why;
    raise(errc::unsupported, all);
  }
  for (std::size_t k = 0; k < m.outputs.size(); ++k) {
    const std::string name(std::string_view(m.output_names[k]));
    const std::string& from = held.at(value_key(m.outputs[k]));
    if (from != name) write("Identity", {from}, {name});
    const shape& s = m.shape_of(m.outputs[k]);
    const content_type held = is_object(s.type) ? content_of(m, m.outputs[k]) : content_type();
    onnx_proto::ValueInfoProto& to = *graph_->add_output();
    const auto& made = m.producer(m.outputs[k]);
    if (const auto* get = made.op.get_if<op::optional_get>(); get && get->type == dtype::optional) {
      to.set_name(name);  // of unknown rank
      to.mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(to_element(held.type)));
    } else {
      declare(to, name, s, held);
    }
  }
  drop_unused();
  standard->set_version(operators_);
  model_.set_ir_version(format_);
  return std::move(model_);
}

namespace {

std::string exported_bytes(const program& p, const export_options& options) {
  const std::optional<program> single = with_single_floats(p);
  const program& narrow = single ? *single : p;
  const std::optional<program> gathered = without_sampling(narrow);
  const program& known = gathered ? *gathered : narrow;
  const std::optional<program> plain = without_block_dequantize(known, written_in_blocks);
  onnx_proto::ModelProto model = exporter(plain ? *plain : known, options.form).run();
  for (const auto& [key, value] : options.metadata) {
    auto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes)) raise(errc::limit, "the model does not fit into one ONNX message");
  return bytes;
}

}  // namespace

quantized_form quantized_form_named(std::string_view name) {
  for (const quantized_form f : {quantized_form::usual, quantized_form::qdq, quantized_form::qoperator})
    if (to_string(f) == name) return f;
  raise(errc::invalid_argument, "a form is usual, qdq or qoperator: found '" + std::string(name) + "'");
}

std::string export_model(const program& p, const export_options& options) {
  if (options.form != quantized_form::qoperator) return exported_bytes(p, options);
  program moved = p;
  sink_dequantize(moved);
  return exported_bytes(moved, options);
}

void write_model(const std::string& path, const program& p, const export_options& options) {
  write_file(path, export_model(p, options));
}

}  // namespace kiln::onnx
