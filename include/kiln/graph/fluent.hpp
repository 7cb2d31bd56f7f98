#pragma once
#include "kiln/op/ops.hpp"

namespace kiln {

/// The methods of a value, one an op: `x.conv(w, {.stride = {2, 2}}).relu()`. Composite layers (softmax, norms) are
/// built from the IR's few ops, so that fusion sees through them.
template <class Value> class fluent {
  constexpr Value self() const { return static_cast<const Value&>(*this); }
  template <class Op, class... Values> constexpr Value make(const Op& op, const Values&... more) const {
    return self().owner().add(op, self(), more...);
  }

 public:
  // elementwise, one operand
  constexpr Value abs() const { return make(op::abs{}); }
  constexpr Value ceil() const { return make(op::ceil{}); }
  constexpr Value convert(dtype to) const { return self().type() == to ? self() : make(op::convert{to}); }
  constexpr Value cos() const { return make(op::cos{}); }
  constexpr Value elu(op::elu attributes = {}) const { return make(attributes); }
  constexpr Value erf() const { return make(op::erf{}); }
  constexpr Value exp() const { return make(op::exp{}); }
  constexpr Value floor() const { return make(op::floor{}); }
  constexpr Value gelu(op::gelu attributes = {}) const { return make(attributes); }
  constexpr Value leaky_relu(op::leaky_relu attributes = {}) const { return make(attributes); }
  constexpr Value log() const { return make(op::log{}); }
  constexpr Value logical_not() const { return make(op::logical_not{}); }
  constexpr Value neg() const { return make(op::neg{}); }
  constexpr Value recip() const { return make(op::recip{}); }
  constexpr Value relu() const { return make(op::relu{}); }
  constexpr Value rsqrt() const { return make(op::rsqrt{}); }
  constexpr Value sigmoid() const { return make(op::sigmoid{}); }
  constexpr Value sign() const { return make(op::sign{}); }
  constexpr Value sin() const { return make(op::sin{}); }
  constexpr Value softplus() const { return make(op::softplus{}); }
  constexpr Value sqrt() const { return make(op::sqrt{}); }
  constexpr Value tanh() const { return make(op::tanh{}); }
  /// x * sigmoid(x).
  constexpr Value silu() const { return self() * sigmoid(); }

  // elementwise, more operands
  friend constexpr Value operator+(Value a, Value b) { return a.owner().add(op::add{}, a, b); }
  friend constexpr Value operator-(Value a, Value b) { return a.owner().add(op::sub{}, a, b); }
  friend constexpr Value operator*(Value a, Value b) { return a.owner().add(op::mul{}, a, b); }
  friend constexpr Value operator/(Value a, Value b) { return a.owner().add(op::div{}, a, b); }
  friend constexpr Value operator-(Value a) { return a.neg(); }
  friend constexpr Value operator<(Value a, Value b) { return a.owner().add(op::less{}, a, b); }
  friend constexpr Value operator>(Value a, Value b) { return a.owner().add(op::greater{}, a, b); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  friend constexpr Value operator+(Value a, Number b) { return a + a.owner().scalar(a.type(), b); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  friend constexpr Value operator-(Value a, Number b) { return a - a.owner().scalar(a.type(), b); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  friend constexpr Value operator*(Value a, Number b) { return a * a.owner().scalar(a.type(), b); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  friend constexpr Value operator/(Value a, Number b) { return a / a.owner().scalar(a.type(), b); }
  constexpr Value equal(Value other) const { return make(op::equal{}, other); }
  constexpr Value max(Value other) const { return make(op::max{}, other); }
  constexpr Value min(Value other) const { return make(op::min{}, other); }
  constexpr Value pow(Value exponent) const { return make(op::pow{}, exponent); }
  /// With this value as the condition.
  constexpr Value where(Value x, Value y) const { return make(op::where{}, x, y); }

  // linear
  /// Matrix product with numpy's rules: leading dims broadcast.
  constexpr Value dot(Value rhs) const {
    Value lhs = self();
    auto& b = lhs.owner();
    const dims l = lhs.get_shape().lens, r = rhs.get_shape().lens;
    if (l.size() >= 2 && r.size() >= 2) {
      const auto lead = [](const dims& d) {
        dims out;
        for (std::size_t i = 0; i + 2 < d.size(); ++i) out.push_back(d[i]);
        return out;
      };
      const auto both = broadcast(lead(l), lead(r));
      if (both) {
        dims lt = *both, rt = *both;
        for (std::size_t i = 2; i > 0; --i) {
          lt.push_back(l[l.size() - i]);
          rt.push_back(r[r.size() - i]);
        }
        lhs = b.broadcast_to(lhs, lt);
        rhs = b.broadcast_to(rhs, rt);
      }
    }
    return b.add(op::dot{}, lhs, rhs);
  }
  /// Convolution of x[n, c, spatial…] with w[m, c / group, kernel…].
  constexpr Value conv(Value w, op::convolution attributes = {}) const { return make(attributes, w); }
  /// The value plus a vector along one axis (a bias along channels: axis 1).
  constexpr Value add_along(std::int64_t axis, Value vector) const { return self() + make_along(axis, vector); }
  /// A vector broadcast to this value's dims along one axis.
  constexpr Value make_along(std::int64_t axis, Value vector) const {
    return self().owner().add(op::broadcast{axis, self().get_shape().lens}, vector);
  }

  // layers
  /// (x - mean) / sqrt(variance + epsilon) * scale + bias along channels (axis 1).
  constexpr Value batch_norm(Value scale, Value bias, Value mean, Value variance, double epsilon = 1e-5) const {
    const Value factor = scale * (variance + epsilon).rsqrt();
    return self() * make_along(1, factor) + make_along(1, bias - mean * factor);
  }
  constexpr Value pool(op::pooling attributes) const { return make(attributes); }
  constexpr Value softmax(std::int64_t axis = -1) const {
    const Value x = self(), e = (x - x.reduce_max({axis})).exp();
    return e / e.reduce_sum({axis});
  }
  constexpr Value log_softmax(std::int64_t axis = -1) const {
    const Value x = self(), shifted = x - x.reduce_max({axis});
    return shifted - shifted.exp().reduce_sum({axis}).log();
  }
  /// Zero mean and unit variance along the axes; scale and bias are the caller's.
  constexpr Value normalize(const ints& axes, double epsilon = 1e-5) const {
    const Value centered = self() - reduce_mean(axes);
    return centered * ((centered * centered).reduce_mean(axes) + epsilon).rsqrt();
  }
  /// x / sqrt(mean(x^2) + epsilon) along the last axis.
  constexpr Value rms_normalize(double epsilon = 1e-5) const {
    const Value x = self();
    return x * ((x * x).reduce_mean({-1}) + epsilon).rsqrt();
  }
  /// Scaled dot-product attention of q (this), k and v [batch, heads, sequence, depth].
  constexpr Value attention(Value k, Value v, op::attention attributes) const { return make(attributes, k, v); }
  constexpr Value attention(Value k, Value v, Value mask, op::attention attributes) const {
    return make(attributes, k, v, mask);
  }

  // reductions: reduced extents become 1
  constexpr Value reduce_max(const ints& axes) const { return make(op::reduce_max{axes}); }
  constexpr Value reduce_mean(const ints& axes) const { return make(op::reduce_mean{axes}); }
  constexpr Value reduce_min(const ints& axes) const { return make(op::reduce_min{axes}); }
  constexpr Value reduce_prod(const ints& axes) const { return make(op::reduce_prod{axes}); }
  constexpr Value reduce_sum(const ints& axes) const { return make(op::reduce_sum{axes}); }

  // views
  constexpr Value broadcast_to(const dims& to) const { return self().owner().broadcast_to(self(), to); }
  constexpr Value flatten(std::int64_t axis = 1) const { return make(op::flatten{axis}); }
  constexpr Value reshape(const dims& to) const { return make(op::reshape{to}); }
  constexpr Value expect_dims(const dims& to) const { return make(op::expect_dims{to}); }
  constexpr Value slice(op::slice attributes) const { return make(attributes); }
  constexpr Value squeeze(const ints& axes) const { return make(op::squeeze{axes}); }
  constexpr Value transpose(const ints& permutation) const { return make(op::transpose{permutation}); }
  constexpr Value unsqueeze(const ints& axes) const { return make(op::unsqueeze{axes}); }

  // indexing
  constexpr Value concat(Value other, std::int64_t axis) const { return make(op::concat{axis}, other); }
  constexpr Value gather(Value indices, std::int64_t axis = 0) const { return make(op::gather{axis}, indices); }
};

}  // namespace kiln
