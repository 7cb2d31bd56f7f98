#include <algorithm>
#include <limits>

#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/tensorflow/impl/ops/list.hpp"

// Operators with bodies. The graphs that their attributes have are those of functions.hpp and loop_parts.hpp.
namespace kiln::tensorflow {

namespace {

using names = std::vector<std::pair<std::string, variable>>;

// A condition of any type: what is not 0 is true.
value condition_of(const node_context& c, const variable& v) {
  if (!v) c.unsupported("its condition cannot be imported");
  if (!v.tensor || v.is_sequence || v.tensor.rank() != 0) c.unsupported("its condition is no scalar");
  return v.tensor.type() == dtype::boolean ? v.tensor : v.tensor.convert(dtype::boolean);
}
const literal* constant_of(const node_context& c, value v) {
  const auto& producer = c.build.module().producer(v.id());
  return producer.kind == instruction_kind::literal ? &producer.constant : nullptr;
}

// A branch as a module that reads what it is given where it is: constants stay constants.
onnx::body_module branch_module(const node_context& c, const onnx::graph& branch, const variables& given) {
  names visible;
  for (std::size_t i = 0; i < branch.inputs.size(); ++i) visible.emplace_back(branch.inputs[i].name, given[i]);
  onnx::graph closed = branch;
  closed.inputs.clear();
  return c.bodies->build_module(closed, {}, visible);
}

// What the branches are given: all inputs but the first.
variables given_to_branches(const node_context& c) {
  variables given;
  for (std::size_t i = 1; i < c.size(); ++i) given.push_back(c.inputs[i]);
  return given;
}
// What branches made, under the numbers of the node's results.
variables numbered(const node_context& c, const variables& made) {
  variables out;
  const auto numbers = c.integers("outputs");
  for (std::size_t i = 0; i < made.size(); ++i) {
    out.resize(static_cast<std::size_t>(numbers[i]) + 1);
    out.back() = made[i];
  }
  return out;
}

variables import_if(node_context& c) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  const value condition = condition_of(c, c.inputs[0]);
  const variables given = given_to_branches(c);
  const onnx::graph &yes = c.body("then_branch"), &no = c.body("else_branch");
  const literal* const known = constant_of(c, condition);
  const variables made = known && !known->has_symbols() ? c.bodies->import_body(known->at<bool>(0) ? yes : no, given)
                                                        : onnx::join_bodies(c, condition, branch_module(c, yes, given),
                                                                            branch_module(c, no, given));
  return numbered(c, made);
}

// One of several branches, which halve until one is left: the last one where no branch has the index.
class case_importer {
 public:
  explicit case_importer(node_context& c) : c_(c), given_(given_to_branches(c)), first_(c.integer("first", 0)) {}

  variables run() {
    const onnx::attribute* const branches = c_.find("branches");
    if (!branches || branches->graphs.empty()) c_.malformed("attribute 'branches' names no functions");
    const std::span<const onnx::graph> graphs = branches->graphs;
    const auto n = static_cast<std::int64_t>(graphs.size());
    index_ = c_.in(0);
    if (index_.rank() != 0 || !is_integer(index_.type()))
      c_.unsupported("the index of its branch is no integer scalar");
    if (const literal* const known = c_.constant(0); known && !known->has_symbols()) {
      const std::int64_t k = c_.numbers(0, "the index of its branch")[0];
      return numbered(c_,
                      c_.bodies->import_body(graphs[static_cast<std::size_t>(k < 0 || k >= n ? n - 1 : k)], given_));
    }
    if (n == 1) return numbered(c_, c_.bodies->import_body(graphs[0], given_));
    if (!c_.find("first")) {  // else it is one that there is
      const value is_one = onnx::both(onnx::not_less(index_, number(0)), index_ < number(n));
      index_ = onnx::selected(is_one, index_, number(n - 1));
    }
    const std::int64_t half = n / 2;
    const auto at = static_cast<std::size_t>(half);
    return numbered(c_, onnx::join_bodies(c_, index_ < number(first_ + half), module_of(graphs.first(at), first_),
                                          module_of(graphs.subspan(at), first_ + half)));
  }

 private:
  value number(std::int64_t k) { return c_.build.scalar(index_.type(), k); }

  // Branches from number `first` on, as one node of their own.
  onnx::body_module module_of(std::span<const onnx::graph> graphs, std::int64_t first) {
    if (graphs.size() == 1) return branch_module(c_, graphs[0], given_);
    onnx::graph g;
    g.name = c_.source.name;
    g.outputs = graphs[0].outputs;
    names visible{{"index", variable(index_)}};
    for (std::size_t i = 0; i < given_.size(); ++i) visible.emplace_back("arg." + std::to_string(i), given_[i]);
    onnx::node n;
    n.name = c_.source.name;
    n.domain = domain;
    n.op_type = c_.source.op_type;
    for (const auto& [name, unused] : visible) n.inputs.push_back(name);
    const auto numbers = c_.integers("outputs");
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      n.outputs.resize(static_cast<std::size_t>(numbers[i]) + 1);
      n.outputs.back() = g.outputs[i].name;
    }
    onnx::attribute branches;
    branches.name = "branches";
    branches.kind = onnx::attribute_kind::graph;
    branches.graphs.assign(graphs.begin(), graphs.end());
    n.attributes = {std::move(branches), number_attribute("first", first),
                    numbers_attribute("outputs", {numbers.begin(), numbers.end()})};
    g.nodes.push_back(std::move(n));
    return c_.bodies->build_module(g, {}, visible);
  }

  node_context& c_;
  variables given_;
  std::int64_t first_;
  value index_;
};

variables import_case(node_context& c) { return case_importer(c).run(); }

class loop_importer {
 public:
  explicit loop_importer(node_context& c) : c_(c), stays_(c.size()) {
    for (const std::int64_t k : c.integers("invariants")) {
      stays_[static_cast<std::size_t>(k)] = true;
      visible_.emplace_back("arg." + std::to_string(k), c.inputs[static_cast<std::size_t>(k)]);
    }
  }

  variables run() {
    most_ = c_.build.scalar(dtype::i64, std::numeric_limits<std::int64_t>::max());
    if (c_.find("limits"))
      count();
    else
      condition_ = condition_of(c_, c_.bodies->import_body(c_.body("cond"), c_.inputs)[0]);
    return collects() ? run_collecting() : run_carrying();
  }

 private:
  // As often as the counter that reaches its limit first says.
  void count() {
    const variables limits = c_.bodies->import_body(c_.body("limits"), c_.inputs);
    const auto counters = c_.integers("counters");
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (!limits[i]) c_.unsupported("its condition cannot be imported");
      const value from = c_.in(static_cast<std::size_t>(counters[i])), to = limits[i].tensor;
      if (from.rank() != 0 || to.rank() != 0) c_.unsupported("a counter of its condition is no scalar");
      const value room = to.convert(dtype::i64) - from.convert(dtype::i64);
      most_ = i ? c_.build.add(op::min{}, most_, room) : room;
    }
    most_ = c_.build.add(op::max{}, most_, c_.build.scalar(dtype::i64, 0));
    condition_ = c_.build.scalar(dtype::boolean, true);
  }

  // Whether each list gets its items from the first on to the last.
  bool collects() const {
    const auto lists = c_.integers("collected"), counters = c_.integers("collected_at");
    if (lists.empty()) return false;
    const literal* const count = constant_of(c_, most_);
    if (!count) return false;
    const auto most = count->at<dimension>(0);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const variable& list = c_.inputs[static_cast<std::size_t>(lists[i])];
      const literal* const from = c_.constant(static_cast<std::size_t>(counters[i]));
      if (!is_reserved(list) || !from || !(from->at<dimension>(0) == dimension(0))) return false;
      const literal* const items = constant_of(c_, list.tensor);
      if (!items || !(larger(0, items->at<dimension>(0)) == most)) return false;
    }
    return true;
  }

  std::vector<std::size_t> carried_without(std::span<const std::int64_t> lists) const {
    std::vector<std::size_t> out;
    for (std::size_t k = 0; k < c_.size(); ++k)
      if (!stays_[k] && std::find(lists.begin(), lists.end(), static_cast<std::int64_t>(k)) == lists.end())
        out.push_back(k);
    return out;
  }

  variables run_collecting() {
    const auto lists = c_.integers("collected");
    const std::vector<std::size_t> numbers = carried_without(lists);
    const variables made = run_body("collecting", numbers);
    variables out = c_.inputs;
    for (std::size_t i = 0; i < numbers.size(); ++i) out[numbers[i]] = made[i];
    for (std::size_t i = 0; i < lists.size(); ++i) out[static_cast<std::size_t>(lists[i])] = made[numbers.size() + i];
    return out;
  }
  variables run_carrying() {
    const std::vector<std::size_t> numbers = carried_without({});
    allocate_lists(numbers);
    const variables made = run_body("body", numbers);
    variables out = c_.inputs;
    for (std::size_t i = 0; i < numbers.size(); ++i) out[numbers[i]] = made[i];
    return out;
  }
  variables run_body(std::string_view body, const std::vector<std::size_t>& numbers) {
    variables carried;
    for (const std::size_t k : numbers) {
      if (!c_.has(k)) c_.malformed("input " + std::to_string(k) + " is missing");
      carried.push_back(onnx::as_one_value(c_, k));
    }
    return onnx::run_loop(c_, open_body(body, numbers.size()), most_, condition_, carried, visible_);
  }

  // A body that reads what stays where it is, so that constants stay constants.
  onnx::graph open_body(std::string_view name, std::size_t carried) const {
    onnx::graph out = c_.body(name);
    out.inputs.resize(2 + carried);
    return out;
  }

  // Lists that begin without items as tensors. What the body makes of one tells the extents of its items.
  void allocate_lists(const std::vector<std::size_t>& numbers) {
    if (std::none_of(numbers.begin(), numbers.end(), [&](std::size_t k) { return is_reserved(c_.inputs[k]); })) return;
    small_vector<onnx::body_parameter> parameters{{shape{dtype::i64, {}}, {}}, {shape{dtype::boolean, {}}, {}}};
    for (const std::size_t k : numbers) {
      const variable& v = c_.inputs[k];
      shape s;
      if (is_reserved(v)) {
        const std::optional<dims> item = reserved_item(c_, v);
        if (!item)
          c_.unsupported("input " + std::to_string(k) +
                         " is a list of items of unknown rank, which its body does not " + "set one after another");
        s = {v.item.type, {reserved_count(c_, v)}};
        for (const dimension d : *item) s.lens.push_back(d);
      } else {
        s = onnx::as_one_value(c_, k).tensor.get_shape();
      }
      parameters.push_back({s, {}});
    }
    const onnx::body_mark before = c_.bodies->mark();
    const onnx::body_module trial =
        c_.bodies->build_module(open_body("body", numbers.size()), {parameters.data(), parameters.size()}, visible_);
    c_.bodies->return_to(before);
    small_vector<value> given = trial.captured;
    for (const variable& v : c_.inputs)
      if (v.tensor && !v.is_sequence) given.push_back(v.tensor);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      variable& v = c_.inputs[numbers[i]];
      if (!is_reserved(v)) continue;
      dims item = trial.outputs[1 + i].type.lens;
      if (item.empty()) c_.malformed("its body makes a scalar of a list");
      item.erase(std::size_t{0});
      for (const dimension d : item)
        if (!onnx::known_outside(d, given))
          c_.unsupported("the extents of a list's items are only known in its body: " + kiln::to_string(d));
      v = variable(allocated(c_, v, item));
    }
  }

  node_context& c_;
  std::vector<bool> stays_;
  names visible_;
  value most_, condition_;
};

variables import_while(node_context& c) { return loop_importer(c).run(); }

}  // namespace

op_importer_table control_importers() {
  static constexpr op_importer table[] = {
      {domain, "Case", 1, import_case},
      {domain, "If", 1, import_if},
      {domain, "StatelessCase", 1, import_case},
      {domain, "StatelessIf", 1, import_if},
      {domain, "StatelessWhile", 1, import_while},
      {domain, "While", 1, import_while},
  };
  return table;
}

}  // namespace kiln::tensorflow
