#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// Scan and SequenceMap: loops whose body selects the slice or item first.
namespace kiln::onnx {

namespace {

node make_node(std::string op_type, std::vector<std::string> inputs, std::string output) {
  node n;
  n.op_type = std::move(op_type);
  n.inputs = std::move(inputs);
  n.outputs.push_back(std::move(output));
  return n;
}
value_info named(std::string name) {
  value_info v;
  v.name = std::move(name);
  return v;
}
const std::string iteration = "loop.iteration", goes_on = "loop.goes_on";

// The body of a loop for a body that takes states and then slices; the nodes of `pick` select the slices.
graph loop_around(const graph& body, std::size_t states, const std::vector<node>& pick) {
  graph g = body;
  g.inputs = {named(iteration), named(goes_on)};
  g.inputs.insert(g.inputs.end(), body.inputs.begin(), body.inputs.begin() + static_cast<std::ptrdiff_t>(states));
  g.nodes.insert(g.nodes.begin(), pick.begin(), pick.end());
  g.outputs.insert(g.outputs.begin(), named(goes_on));
  return g;
}

void check_inputs(const node_context& c, const graph& body, std::size_t given) {
  if (body.inputs.size() != given)
    c.malformed("its body takes " + std::to_string(body.inputs.size()) + " inputs, " + std::to_string(given) +
                " are given");
}

std::int64_t entry(std::span<const std::int64_t> list, std::size_t k) { return k < list.size() ? list[k] : 0; }

value to_front(value x, std::int64_t axis) {
  ints order{axis};
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(x.rank()); ++d)
    if (d != axis) order.push_back(d);
  return axis == 0 ? x : x.transpose(order);
}
value from_front(value x, std::int64_t axis) {
  ints order;
  for (std::int64_t d = 1; d <= axis; ++d) order.push_back(d);
  order.push_back(0);
  for (std::int64_t d = axis + 1; d < static_cast<std::int64_t>(x.rank()); ++d) order.push_back(d);
  return axis == 0 ? x : x.transpose(order);
}

// Scan over the first dim of `scanned`, which have one length.
variables scan(node_context& c, const graph& body, const variables& states, small_vector<value> scanned) {
  if (scanned.empty()) c.malformed("a scan has something to scan over");
  check_inputs(c, body, states.size() + scanned.size());
  dimension steps = scanned[0].dim(0);
  for (const value& x : scanned)
    if (x.dim(0).is_constant()) steps = x.dim(0);
  std::vector<node> pick;
  std::vector<std::pair<std::string, variable>> visible;
  for (std::size_t k = 0; k < scanned.size(); ++k) {
    dims lens = scanned[k].get_shape().lens;
    lens[0] = steps;
    if (!(lens == scanned[k].get_shape().lens)) scanned[k] = scanned[k].expect_dims(lens);
    const std::string name = "scan.input." + std::to_string(k);
    visible.emplace_back(name, scanned[k]);
    pick.push_back(make_node("Gather", {name, iteration}, body.inputs[states.size() + k].name));
  }
  const value length = dimensions_value(c.build, {}, small_vector<dimension>{steps});
  return run_loop(c, loop_around(body, states.size(), pick), length, c.build.scalar(dtype::boolean, true), states,
                  visible);
}

variables import_scan(node_context& c) {
  const auto slices = static_cast<std::size_t>(c.integer("num_scan_inputs", 0));
  if (slices < 1 || slices > c.size()) c.malformed("num_scan_inputs is the number of inputs that are scanned");
  const std::size_t n = c.size() - slices;
  const auto axes = c.integers("scan_input_axes"), directions = c.integers("scan_input_directions"),
             out_axes = c.integers("scan_output_axes"), out_directions = c.integers("scan_output_directions");
  variables states;
  small_vector<value> scanned;
  for (std::size_t i = 0; i < n; ++i) states.push_back(as_one_value(c, i));
  for (std::size_t k = 0; k < slices; ++k) {
    const value x = c.in(n + k), front = to_front(x, axis_within(c, entry(axes, k), x.rank()));
    scanned.push_back(entry(directions, k) ? front | op::reverse{{0}} : front);
  }
  variables out = scan(c, c.body("body"), states, scanned);
  for (std::size_t k = n; k < out.size(); ++k) {
    value y = out[k].tensor;
    if (entry(out_directions, k - n)) y = y | op::reverse{{0}};
    out[k] = from_front(y, axis_within(c, entry(out_axes, k - n), y.rank()));
  }
  return out;
}

// Scan 8 over a batch that is symbolic or large: a loop over the batch around the scan's loop.
variables scan_entries(node_context& c, std::size_t states, std::size_t slices) {
  if (c.has(0)) c.unsupported("scans a batch of " + kiln::to_string(c.in(c.size() - 1).dim(0)) + " by lengths");
  const auto directions = c.integers("directions");
  const std::string entry_number = "batch.entry", entry_goes_on = "batch.goes_on";
  std::vector<std::pair<std::string, variable>> visible;
  std::vector<node> pick;
  graph entries;
  entries.inputs = {named(entry_number), named(entry_goes_on)};
  node steps;
  steps.op_type = "Loop";
  steps.inputs = {"scan.length", "scan.begins"};
  const graph& body = c.body("body");
  check_inputs(c, body, states + slices);
  dimension batch = c.in(c.size() - 1).dim(0), length = c.in(c.size() - 1).dim(1);
  for (std::size_t k = 0; k < states + slices; ++k) {
    value x = c.in(1 + k);
    dims lens = x.get_shape().lens;
    if (lens.empty() || (k >= states && lens.size() < 2))
      c.malformed("each input has a batch, and what is scanned steps");
    lens[0] = batch;
    if (k >= states) lens[1] = length;
    if (!(lens == x.get_shape().lens)) x = x.expect_dims(lens);
    if (k >= states && entry(directions, k - states)) x = x | op::reverse{{1}};
    const std::string all = "batch.input." + std::to_string(k), one = "scan.input." + std::to_string(k);
    visible.emplace_back(all, x);
    entries.nodes.push_back(make_node("Gather", {all, entry_number}, one));
    if (k < states)
      steps.inputs.push_back(one);
    else
      pick.push_back(make_node("Gather", {one, iteration}, body.inputs[k].name));
  }
  visible.emplace_back("scan.length", dimensions_value(c.build, {}, small_vector<dimension>{length}));
  visible.emplace_back("scan.begins", c.build.scalar(dtype::boolean, true));
  attribute inner;
  inner.name = "body", inner.kind = attribute_kind::graph;
  inner.graphs.push_back(loop_around(body, states, pick));
  steps.attributes.push_back(std::move(inner));
  entries.outputs.push_back(named(entry_goes_on));
  for (std::size_t k = 0; k < body.outputs.size(); ++k) {
    steps.outputs.push_back("scan.output." + std::to_string(k));
    entries.outputs.push_back(named(steps.outputs.back()));
  }
  entries.nodes.push_back(std::move(steps));
  return run_loop(c, entries, dimensions_value(c.build, {}, small_vector<dimension>{batch}),
                  c.build.scalar(dtype::boolean, true), {}, visible);
}

// Scan 8 scans each entry of a batch, up to its own length if the first input gives lengths; outputs are 0 after that.
variables import_scan_8(node_context& c) {
  const auto slices = static_cast<std::size_t>(c.integer("num_scan_inputs", 0));
  if (slices < 1 || slices + 1 > c.size()) c.malformed("num_scan_inputs is the number of inputs that are scanned");
  const std::size_t n = c.size() - 1 - slices;
  const dimension batch = c.in(c.size() - 1).dim(0), longest = c.in(c.size() - 1).dim(1);
  constexpr std::int64_t most = 256;  // each becomes a loop of its own
  if (!batch.is_constant() || batch.value() < 1 || batch.value() > most) return scan_entries(c, n, slices);
  small_vector<dimension> lengths(static_cast<std::size_t>(batch.value()), longest);
  if (c.has(0))
    for (std::int64_t b = 0; b < batch.value(); ++b)
      lengths[static_cast<std::size_t>(b)] = c.dimensions_of(c.in(0).slice({{0}, {b}, {b + 1}, {}}), "a length", 0)[0];
  const auto directions = c.integers("directions");
  small_vector<small_vector<value>> parts;
  for (std::int64_t b = 0; b < batch.value(); ++b) {
    const dimension length = lengths[static_cast<std::size_t>(b)];
    const auto one = [&](value x) { return element_at(x, 0, b); };
    variables states;
    small_vector<value> scanned;
    for (std::size_t i = 0; i < n; ++i) states.push_back(one(c.in(1 + i)));
    for (std::size_t k = 0; k < slices; ++k) {
      value x = one(c.in(1 + n + k));
      if (c.has(0)) x = x.slice({{0}, {0}, {length}, {}});
      scanned.push_back(entry(directions, k) ? x | op::reverse{{0}} : x);
    }
    const variables made = scan(c, c.body("body"), states, scanned);
    parts.resize(made.size());
    for (std::size_t k = 0; k < made.size(); ++k) {
      value y = made[k].tensor;
      if (c.has(0) && k >= n) {
        op::pad at_end;
        at_end.pads.resize(2 * y.rank(), dimension(0));
        at_end.pads[y.rank()] = longest - y.get_shape().lens[0];
        y = y | at_end;
      }
      parts[k].push_back(y.unsqueeze({0}));
    }
  }
  variables out;
  for (const auto& p : parts) out.push_back(p.size() == 1 ? p[0] : c.build.add(op::concat{0}, p));
  return out;
}

// Runs the body for each item; its results are sequences. Other inputs are sequences of the same length, or tensors.
variables import_sequence_map(node_context& c) {
  const graph& body = c.body("body");
  if (!c.has(0) || body.inputs.size() != c.size()) c.malformed("its body takes as many inputs as there are");
  bool known = true;
  const auto is_list = [&](const variable& v) {
    return v.is_sequence || (v.tensor && v.tensor.type() == dtype::sequence);
  };
  for (std::size_t i = 0; i < c.size(); ++i) known = known && (c.inputs[i].is_sequence || !is_list(c.inputs[i]));
  variables out;
  if (known) {
    const std::size_t length = c.sequence(0).size();
    for (std::size_t k = 0; k < body.outputs.size(); ++k) out.push_back(variable::sequence({}));
    for (std::size_t i = 0; i < length; ++i) {
      variables given;
      for (const variable& v : c.inputs) {
        if (v.is_sequence && v.items.size() != length) c.malformed("sequences differ in length");
        given.push_back(v.is_sequence ? variable(v.items[i]) : v);
      }
      const variables made = c.bodies->import_body(body, given);
      for (std::size_t k = 0; k < out.size(); ++k) {
        if (!made[k].tensor || !made[k].possible_types.empty())
          c.unsupported("output " + std::to_string(k) + " of its body is not imported as a tensor");
        out[k].items.push_back(made[k].tensor);
      }
    }
    return out;
  }
  graph g = body;
  g.inputs = {named(iteration), named(goes_on)};
  g.outputs = {named(goes_on)};
  std::vector<std::pair<std::string, variable>> visible;
  std::vector<node> pick;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::string name = "map.input." + std::to_string(i);
    const variable v = as_one_value(c, i);
    visible.emplace_back(name, v);
    if (is_list(v))
      pick.push_back(make_node("SequenceAt", {name, iteration}, body.inputs[i].name));
    else
      pick.push_back(make_node("Identity", {name}, body.inputs[i].name));
  }
  g.nodes.insert(g.nodes.begin(), pick.begin(), pick.end());
  variables carried;
  for (std::size_t k = 0; k < body.outputs.size(); ++k) {
    const std::string before = "map.before." + std::to_string(k), after = "map.after." + std::to_string(k);
    g.inputs.push_back(named(before));
    g.outputs.push_back(named(after));
    g.nodes.push_back(make_node("SequenceInsert", {before, body.outputs[k].name}, after));
    carried.push_back({c.build.add(op::make_sequence{}, small_vector<value>{}), {dtype::f32, item_type::none}});
  }
  const value length = c.build.add(op::sequence_length{}, visible[0].second.tensor);
  return run_loop(c, g, length, c.build.scalar(dtype::boolean, true), carried, visible);
}

}  // namespace

std::span<const op_importer> scan_importers() {
  static constexpr op_importer table[] = {
      {"", "Scan", 8, import_scan_8, "by lengths of its own: the batch is a constant of at most 256"},
      {"", "Scan", 9, import_scan},
      {"", "SequenceMap", 17, import_sequence_map},
  };
  return table;
}

}  // namespace kiln::onnx
