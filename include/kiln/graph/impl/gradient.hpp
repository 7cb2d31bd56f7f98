#pragma once
#include "kiln/graph/gradient.hpp"

// What the rules of gradients share. A family's rules stand in gradient_<family>.ipp.
namespace kiln::detail {

/// One instruction on the way back: the slope of its result is known, those of its operands are asked for.
class backward_step {
 public:
  backward_step(builder& b, const operation& op, std::span<const value_id> inputs, value_id result, value slope)
      : build(b), op(op), slope(slope), inputs_(inputs), result_(result) {}

  builder& build;
  const operation& op;
  const value slope;  ///< of the result

  std::size_t inputs() const { return inputs_.size(); }
  value in(std::size_t i) const { return build.wrap(inputs_[i]); }
  value out() const { return build.wrap(result_); }
  const dims& in_lens(std::size_t i) const { return in(i).get_shape().lens; }
  /// Whether operand i holds floats; nothing else has a slope.
  bool takes(std::size_t i) const { return is_float(in(i).type()); }
  template <class Op> const Op& as() const { return *op.get_if<Op>(); }
  value number(double x) const { return build.scalar(slope.type(), x); }
  value zeros_like(std::size_t i) const;
  /// Says what operand i's slope is; one with more dims than the operand, or repeated ones, is summed over those.
  void give(std::size_t i, value part) { parts.push_back({i, part}); }

  struct part {
    std::size_t input;
    value slope;
  };
  small_vector<part> parts;

 private:
  std::span<const value_id> inputs_;
  value_id result_;
};

/// The derivative of one op.
struct gradient_rule {
  std::string_view op;
  void (*apply)(backward_step&);
};
std::span<const gradient_rule> pointwise_gradients();
std::span<const gradient_rule> reduce_gradients();
std::span<const gradient_rule> view_gradients();
std::span<const gradient_rule> index_gradients();
std::span<const gradient_rule> linear_gradients();
std::span<const gradient_rule> window_gradients();

/// What a slice took, back in its place in a tensor of these extents, zeros around it.
value unsliced(value slope, const op::slice& o, const dims& lens);
/// A tensor of zeros.
value zeros(builder& b, const shape& s);
/// All axes of a rank, or those from `first` on.
inline ints axes_between(std::size_t first, std::size_t rank) {
  ints out;
  for (std::size_t d = first; d < rank; ++d) out.push_back(static_cast<std::int64_t>(d));
  return out;
}

}  // namespace kiln::detail
