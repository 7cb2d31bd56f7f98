#include "kiln/graph/impl/gradient.hpp"

#include <string>

namespace kiln {

namespace detail {

value zeros(builder& b, const shape& s) { return b.add(op::fill{s.lens, 0, s.type}); }
value backward_step::zeros_like(std::size_t i) const { return zeros(build, in(i).get_shape()); }

namespace {

const gradient_rule* find_rule(std::string_view op) {
  for (const auto family : {pointwise_gradients(), reduce_gradients(), view_gradients(), index_gradients(),
                            linear_gradients(), window_gradients()})
    for (const gradient_rule& r : family)
      if (r.op == op) return &r;
  return nullptr;
}

// The values between xs and y, and their slopes.
class tape {
 public:
  tape(value y, std::span<const value> xs) : build_(y.owner()), slopes_(y.id().instruction + 1) {
    mark(y, xs);
    add(y.id(), build_.scalar(y.type(), 1.0).broadcast_to(y.get_shape().lens));
    for (std::uint32_t i = y.id().instruction + 1; i-- > 0;)
      if (passes_[i] && !is_x(i, xs)) step(i);
  }

  value slope_of(value x) const {
    if (x.id().instruction < slopes_.size())
      for (const auto& [result, slope] : slopes_[x.id().instruction])
        if (result == x.id().result) return slope;
    return zeros(build_, x.get_shape());
  }

 private:
  static bool is_x(std::uint32_t i, std::span<const value> xs) {
    for (const value x : xs)
      if (x.id().instruction == i) return true;
    return false;
  }

  // An instruction passes slopes on where it depends on one of xs and y depends on it. Values are made before they are
  // read, so one sweep finds each of the two.
  void mark(value y, std::span<const value> xs) {
    const module_graph& m = build_.module();
    const std::uint32_t n = y.id().instruction + 1;
    passes_.resize(n, 0);
    small_vector<std::uint8_t> needed(n, 0);
    for (std::uint32_t i = 0; i < n; ++i) {
      passes_[i] = is_x(i, xs);
      for (const value_id v : m[i].inputs)
        if (passes_[v.instruction] && is_float(m.shape_of(v).type)) passes_[i] = 1;
    }
    needed[n - 1] = 1;
    for (std::uint32_t i = n; i-- > 0;) {
      if (needed[i])
        for (const value_id v : m[i].inputs) needed[v.instruction] = 1;
      passes_[i] = passes_[i] && needed[i];
    }
  }

  void step(std::uint32_t i) {
    if (slopes_[i].empty()) return;
    // building moves the instructions
    const operation op = build_.module()[i].op;
    const small_vector<value_id> inputs = build_.module()[i].inputs;
    const std::string_view name = op.name();
    const gradient_rule* rule = find_rule(name);
    if (!rule || build_.module()[i].results.size() != 1)
      raise(errc::unsupported, "op '" + std::string(name) + "' has no derivative");
    backward_step s(build_, op, {inputs.data(), inputs.size()}, {i, 0}, slopes_[i][0].second);
    rule->apply(s);
    for (const auto& [k, part] : s.parts)
      if (s.takes(k) && passes_[inputs[k].instruction]) add(inputs[k], summed_to(part, s.in_lens(k)));
  }

  // The sum over the dims along which a value of these extents was repeated.
  static value summed_to(value slope, const dims& lens) {
    const dims from = slope.get_shape().lens;
    if (from == lens) return slope;
    ints axes;
    const std::size_t added = from.size() - lens.size();
    for (std::size_t d = 0; d < from.size(); ++d)
      if (d < added || (lens[d - added] == dimension(1) && !(from[d] == dimension(1))))
        axes.push_back(static_cast<std::int64_t>(d));
    if (!axes.empty()) slope = slope.reduce_sum(axes);
    return slope.get_shape().lens == lens ? slope : slope.reshape(lens);
  }

  void add(value_id v, value part) {
    for (auto& [result, slope] : slopes_[v.instruction])
      if (result == v.result) {
        slope = slope + part;
        return;
      }
    slopes_[v.instruction].push_back({v.result, part});
  }

  builder& build_;
  small_vector<std::uint8_t> passes_;
  small_vector<small_vector<std::pair<std::uint32_t, value>>> slopes_;
};

}  // namespace
}  // namespace detail

small_vector<value> gradients(value y, std::span<const value> xs) {
  for (const value x : xs)
    if (!is_float(x.type()))
      raise(errc::unsupported, "a derivative by a tensor of " + std::string(to_string(x.type())) + ": not of floats");
  if (!is_float(y.type()))
    raise(errc::unsupported, "a derivative of a tensor of " + std::string(to_string(y.type())) + ": not of floats");
  const detail::tape back(y, xs);
  small_vector<value> out;
  for (const value x : xs) out.push_back(back.slope_of(x));
  return out;
}

}  // namespace kiln
