#include "kiln/graph/impl/gradient.hpp"
#include "kiln/op/index/cumprod.hpp"

// Reductions: the slope of a sum is every element's.
namespace kiln::detail {

namespace {

value repeated(const backward_step& s, value x) { return x.broadcast_to(s.in_lens(0)); }
value spread(const backward_step& s) { return repeated(s, s.slope); }

void sum(backward_step& s) { s.give(0, spread(s)); }
void mean(backward_step& s) {
  const value ones = s.build.add(op::fill{s.in_lens(0), 1, s.slope.type()});
  s.give(0, repeated(s, s.slope / ones.reduce_sum(s.op.axes())));
}
void extreme(backward_step& s) {  // equal elements share
  const value chosen = s.in(0).equal(repeated(s, s.out())).convert(s.slope.type());
  s.give(0, chosen * repeated(s, s.slope / chosen.reduce_sum(s.op.axes())));
}
void l1(backward_step& s) { s.give(0, spread(s) * s.in(0).sign()); }
void l2(backward_step& s) {
  const value none = s.number(0);
  s.give(0, s.in(0) * repeated(s, s.out().equal(none).where(none, s.slope / s.out())));
}
void sum_square(backward_step& s) { s.give(0, s.in(0) * spread(s) * 2.0); }
// The product of the others: of those before and those after, so that an element may be zero.
void prod(backward_step& s) {
  const ints& axes = s.op.axes();
  if (axes.size() != 1) raise(errc::unsupported, "op 'reduce_prod' over several axes has no derivative");
  const std::int64_t axis = normal_axis(axes[0], s.in(0).rank());
  const value before = s.build.add(op::cumprod{axis, true, false}, s.in(0)),
              after = s.build.add(op::cumprod{axis, true, true}, s.in(0));
  s.give(0, spread(s) * before * after);
}

constexpr gradient_rule rules[] = {
    {"reduce_l1", l1},       {"reduce_l2", l2},     {"reduce_max", extreme}, {"reduce_mean", mean},
    {"reduce_min", extreme}, {"reduce_prod", prod}, {"reduce_sum", sum},     {"reduce_sum_square", sum_square},
};

}  // namespace

std::span<const gradient_rule> reduce_gradients() { return rules; }

}  // namespace kiln::detail
