#include "kiln/graph/impl/gradient.hpp"

// Elementwise ops: an operand's slope is the result's times the partial derivative.
namespace kiln::detail {

namespace {

// Of one operand: its derivative from x, the result y, and a way to write numbers.
using derivative = value (*)(const backward_step& s, value x, value y);

template <derivative Of> void unary(backward_step& s) { s.give(0, s.slope * Of(s, s.in(0), s.out())); }
void flat(backward_step&) {}  // constant but for jumps

value pick(value condition, value a, value b) { return condition.where(a, b); }
value positive(const backward_step& s, value x) { return x > s.number(0); }
value one(const backward_step& s) { return s.number(1); }

// Where x > at the slope is a, else b.
value beyond(const backward_step& s, value x, double at, value a, value b) { return pick(x > s.number(at), a, b); }

value d_gelu(const backward_step& s, value x, value) {
  if (s.as<op::gelu>().tanh_approximation) {
    const value t = (x * (x * x * 0.044715 + 1.0) * 0.7978845608028654).tanh();
    return (t + 1.0) * 0.5 + x * 0.5 * (one(s) - t * t) * ((x * x * 0.134145 + 1.0) * 0.7978845608028654);
  }
  return ((x * 0.7071067811865476).erf() + 1.0) * 0.5 + x * (-(x * x * 0.5)).exp() * 0.3989422804014327;
}
value d_hard_sigmoid(const backward_step& s, value x, value y) {
  const value alpha = s.number(s.as<op::hard_sigmoid>().alpha), none = s.number(0);
  return pick(positive(s, y), pick(y < one(s), alpha, none), none).broadcast_to(x.get_shape().lens);
}
value d_hard_swish(const backward_step& s, value x, value) {
  const value inside = x * (1.0 / 3) + 0.5;
  return beyond(s, x, 3, one(s), pick(x > s.number(-3), inside, s.number(0)));
}
value d_mish(const backward_step& s, value x, value) {
  const value t = x.softplus().tanh();
  return t + x * (one(s) - t * t) * x.sigmoid();
}
value d_shrink(const backward_step& s, value x, value) {
  const double limit = s.as<op::shrink>().lambd;
  return beyond(s, x, limit, one(s), pick(x < s.number(-limit), one(s), s.number(0)));
}
value d_exponential(const backward_step& s, value x, double outside, value inside) {
  return beyond(s, x, 0, s.number(outside), inside);
}

void add(backward_step& s) { s.give(0, s.slope), s.give(1, s.slope); }
void sub(backward_step& s) { s.give(0, s.slope), s.give(1, -s.slope); }
void mul(backward_step& s) { s.give(0, s.slope * s.in(1)), s.give(1, s.slope * s.in(0)); }
void div(backward_step& s) {
  s.give(0, s.slope / s.in(1));
  s.give(1, -s.slope * s.out() / s.in(1));
}
void square_difference(backward_step& s) {
  const value part = s.slope * (s.in(0) - s.in(1)) * 2.0;
  s.give(0, part), s.give(1, -part);
}
void pow(backward_step& s) {
  const value x = s.in(0), e = s.in(1), none = s.number(0);
  s.give(0, s.slope * e * x.pow(e - 1.0));
  // ln x where there is one; a power of zero does not depend on a positive exponent
  s.give(1, s.slope * pick(positive(s, x), s.out() * pick(positive(s, x), x, one(s)).log(), none));
}
void extreme(backward_step& s, value first_wins, value tie) {
  const value none = s.number(0), half = s.slope * 0.5;
  s.give(0, pick(tie, half, pick(first_wins, s.slope, none)));
  s.give(1, pick(tie, half, pick(first_wins, none, s.slope)));
}
void max(backward_step& s) { extreme(s, s.in(0) > s.in(1), s.in(0).equal(s.in(1))); }
void min(backward_step& s) { extreme(s, s.in(0) < s.in(1), s.in(0).equal(s.in(1))); }
void prelu(backward_step& s) {
  const value below = s.in(0) < s.number(0);
  s.give(0, pick(below, s.slope * s.in(1), s.slope));
  s.give(1, pick(below, s.slope * s.in(0), s.number(0)));
}
void remainder(backward_step& s) {  // x - y * quotient, the quotient being flat
  s.give(0, s.slope);
  s.give(1, s.slope * (s.out() - s.in(0)) / s.in(1));
}
void where(backward_step& s) {
  s.give(1, pick(s.in(0), s.slope, s.number(0)));
  s.give(2, pick(s.in(0), s.number(0), s.slope));
}
void clip(backward_step& s) {
  const value x = s.in(0), low = s.in(1), high = s.in(2), none = s.number(0);
  const value above = x > high, below = x < low;
  s.give(0, pick(above, none, pick(below, none, s.slope)));
  s.give(1, pick(above, none, pick(below, s.slope, none)));
  s.give(2, pick(above, s.slope, none));
}
void convert(backward_step& s) {
  if (s.takes(0)) s.give(0, s.slope.convert(s.in(0).type()));
}
void identity(backward_step& s) { s.give(0, s.slope); }

constexpr gradient_rule rules[] = {
    {"abs", unary<[](const backward_step&, value x, value) { return x.sign(); }>},
    {"acos", unary<[](const backward_step& s, value x, value) { return -(one(s) - x * x).rsqrt(); }>},
    {"acosh", unary<[](const backward_step&, value x, value) { return (x * x - 1.0).rsqrt(); }>},
    {"add", add},
    {"asin", unary<[](const backward_step& s, value x, value) { return (one(s) - x * x).rsqrt(); }>},
    {"asinh", unary<[](const backward_step&, value x, value) { return (x * x + 1.0).rsqrt(); }>},
    {"atan", unary<[](const backward_step&, value x, value) { return (x * x + 1.0).recip(); }>},
    {"atanh", unary<[](const backward_step& s, value x, value) { return (one(s) - x * x).recip(); }>},
    {"ceil", flat},
    {"celu", unary<[](const backward_step& s, value x, value) {
       return d_exponential(s, x, 1, (x / static_cast<double>(s.as<op::celu>().alpha)).exp());
     }>},
    {"clip", clip},
    {"convert", convert},
    {"cos", unary<[](const backward_step&, value x, value) { return -x.sin(); }>},
    {"cosh", unary<[](const backward_step& s, value x, value) { return s.build.add(op::sinh{}, x); }>},
    {"div", div},
    {"elu", unary<[](const backward_step& s, value x, value y) {
       return d_exponential(s, x, 1, y + static_cast<double>(s.as<op::elu>().alpha));
     }>},
    {"erf", unary<[](const backward_step&, value x, value) { return (-(x * x)).exp() * 1.1283791670955126; }>},
    {"exp", unary<[](const backward_step&, value, value y) { return y; }>},
    {"expm1", unary<[](const backward_step&, value, value y) { return y + 1.0; }>},
    {"floor", flat},
    {"fmod", remainder},
    {"gelu", unary<d_gelu>},
    {"hard_sigmoid", unary<d_hard_sigmoid>},
    {"hard_swish", unary<d_hard_swish>},
    {"identity", identity},
    {"leaky_relu", unary<[](const backward_step& s, value x, value) {
       return beyond(s, x, 0, one(s), s.number(s.as<op::leaky_relu>().alpha));
     }>},
    {"log", unary<[](const backward_step&, value x, value) { return x.recip(); }>},
    {"log1p", unary<[](const backward_step&, value x, value) { return (x + 1.0).recip(); }>},
    {"max", max},
    {"min", min},
    {"mish", unary<d_mish>},
    {"mod", remainder},
    {"mul", mul},
    {"neg", [](backward_step& s) { s.give(0, -s.slope); }},
    {"pow", pow},
    {"prelu", prelu},
    {"recip", unary<[](const backward_step&, value, value y) { return -(y * y); }>},
    {"relu", unary<[](const backward_step& s, value x, value) { return beyond(s, x, 0, one(s), s.number(0)); }>},
    {"round", flat},
    {"rsqrt", unary<[](const backward_step&, value, value y) { return y * y * y * -0.5; }>},
    {"selu", unary<[](const backward_step& s, value x, value y) {
       const auto& o = s.as<op::selu>();
       return d_exponential(s, x, o.gamma, y + static_cast<double>(o.gamma) * o.alpha);
     }>},
    {"shrink", unary<d_shrink>},
    {"sigmoid", unary<[](const backward_step& s, value, value y) { return y * (one(s) - y); }>},
    {"sign", flat},
    {"sin", unary<[](const backward_step&, value x, value) { return x.cos(); }>},
    {"sinh", unary<[](const backward_step& s, value x, value) { return s.build.add(op::cosh{}, x); }>},
    {"softplus", unary<[](const backward_step&, value x, value) { return x.sigmoid(); }>},
    {"softsign", unary<[](const backward_step&, value x, value) {
       const value size = x.abs() + 1.0;
       return (size * size).recip();
     }>},
    {"sqrt", unary<[](const backward_step&, value, value y) { return y.recip() * 0.5; }>},
    {"square_difference", square_difference},
    {"sub", sub},
    {"tan", unary<[](const backward_step&, value, value y) { return y * y + 1.0; }>},
    {"tanh", unary<[](const backward_step& s, value, value y) { return one(s) - y * y; }>},
    {"thresholded_relu", unary<[](const backward_step& s, value x, value) {
       return beyond(s, x, s.as<op::thresholded_relu>().alpha, one(s), s.number(0));
     }>},
    {"where", where},
};

}  // namespace

std::span<const gradient_rule> pointwise_gradients() { return rules; }

}  // namespace kiln::detail
