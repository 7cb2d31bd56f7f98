#include "kiln/graph/gradient.hpp"
#include "kiln/onnx/impl/ops/common.hpp"

// Gradient: derivatives of a tensor of the graph.
namespace kiln::onnx {

namespace {

value tensor_named(const node_context& c, std::string_view name, std::string_view attribute) {
  const variable v = c.bodies->named(name);
  if (!v)
    c.malformed("attribute '" + std::string(attribute) + "' names '" + std::string(name) + "', which has no value");
  if (v.is_sequence) c.unsupported("'" + std::string(name) + "' is a sequence");
  return v.tensor;
}

// Computes y again with other values in place of some of those that it is computed from.
class replay {
 public:
  explicit replay(value y) : build_(y.owner()), y_(y) {}
  void put(value before, value now) {
    if (!(before.id() == now.id())) put_.push_back({before.id(), now.id()});
  }
  value run() {
    if (put_.empty()) return y_;
    for (std::uint32_t i = 0; i <= y_.id().instruction; ++i) {
      // adding moves the instructions
      small_vector<value_id> inputs = build_.module()[i].inputs;
      bool same = true;
      for (value_id& v : inputs) {
        const value_id before = std::exchange(v, now(v));
        same = same && before == v;
      }
      moved_.push_back(same ? i : build_.module().add(operation(build_.module()[i].op), std::move(inputs)).instruction);
    }
    return build_.wrap(now(y_.id()));
  }

 private:
  value_id now(value_id v) const {
    for (const auto& [before, other] : put_)
      if (before == v) return other;
    return {moved_[v.instruction], v.result};
  }

  builder& build_;
  value y_;
  small_vector<std::pair<value_id, value_id>> put_;
  small_vector<std::uint32_t> moved_;  // by instruction
};

variables import_gradient(node_context& c) {
  const auto xs = c.texts("xs"), zs = c.texts("zs");
  if (xs.empty()) c.malformed("attribute 'xs' names the tensors to differentiate by");
  if (c.size() != xs.size() + zs.size())
    c.malformed(std::to_string(c.size()) + " inputs for " + std::to_string(xs.size() + zs.size()) +
                " names in xs and zs");
  if (!c.find("y")) c.malformed("attribute 'y' is missing");
  replay made(tensor_named(c, c.text("y", ""), "y"));
  small_vector<value> by;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const bool is_x = i < xs.size();
    const value before = is_x ? tensor_named(c, xs[i], "xs") : tensor_named(c, zs[i - xs.size()], "zs");
    if (!(before.get_shape() == c.in(i).get_shape()))
      c.malformed("input " + std::to_string(i) + " is " + kiln::to_string(c.in(i).get_shape()) + ", but stands for " +
                  kiln::to_string(before.get_shape()));
    made.put(before, c.in(i));
    if (is_x) by.push_back(c.in(i));
  }
  variables out;
  for (const value slope : gradients(made.run(), {by.data(), by.size()})) out.push_back(slope);
  return out;
}

}  // namespace

std::span<const op_importer> gradient_importers() {
  static constexpr op_importer table[] = {{"ai.onnx.preview.training", "Gradient", 1, import_gradient}};
  return table;
}

}  // namespace kiln::onnx
