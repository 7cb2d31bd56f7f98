#include <limits>
#include <string>

#include "kiln/graph/impl/gradient.hpp"

// Pooling: a window is the sum or the greatest of as many strided slices as it has elements.
namespace kiln::detail {

namespace {

constexpr std::int64_t most_elements = 64;

// The slices of a pooling's padded input, one for each element of the window.
class windows {
 public:
  windows(const op::pooling& o, const dims& in, const dims& out) : pooling_(o), in_(in) {
    const std::size_t axes = in.size() - 2;
    around_ = stated_ = decltype(around_)(2 * in.size(), dimension(0));
    for (std::size_t d = 0; d < axes; ++d) {
      const dimension reach = (out[d + 2] - 1) * o.stride[d] + 1;
      const dimension whole = reach + (o.lengths[d] - 1) * o.dilation[d];
      stated_[d + 2] = around_[d + 2] = o.pads[d];
      stated_[in.size() + d + 2] = o.pads[axes + d];
      around_[in.size() + d + 2] = whole - in[d + 2] - o.pads[d];
      padded_lens_.push_back(whole);
      reach_.push_back(reach);
    }
    padded_lens_.insert(0, in[1]);
    padded_lens_.insert(0, in[0]);
    ints at(axes, 0), lengths;
    for (const std::int64_t n : o.lengths) lengths.push_back(n);
    do slices_.push_back(slice_at(at));
    while (next_index(at, lengths));
  }

  const small_vector<op::slice>& slices() const { return slices_; }
  const dims& padded_lens() const { return padded_lens_; }
  value padded(value x, double with) const { return around(x, around_, with); }
  /// How many elements each window's mean counts.
  value counts(builder& b, dtype t) const {
    const value ones = b.add(op::fill{in_, 1, t});
    value inside = padded(ones, 0);
    if (pooling_.count_include_pad) {  // but not what is after the stated padding
      auto rest = around_;
      for (std::size_t k = 0; k < rest.size(); ++k) rest[k] = rest[k] - stated_[k];
      inside = around(around(ones, stated_, 1), rest, 0);
    }
    value sum;
    for (const op::slice& s : slices_) sum = sum ? sum + inside.slice(s) : inside.slice(s);
    return sum;
  }
  value cropped(value x) const {
    auto back = around_;
    for (dimension& d : back) d = -d;
    return around(x, back, 0);
  }

 private:
  static value around(value x, const inline_vector<dimension, 2 * max_rank>& pads, double with) {
    return x.owner().add(op::pad{op::pad_mode::constant, pads}, x, x.owner().scalar(x.type(), with));
  }
  op::slice slice_at(const ints& at) const {
    op::slice s;
    for (std::size_t d = 0; d < at.size(); ++d) {
      s.axes.push_back(static_cast<std::int64_t>(d) + 2);
      s.starts.push_back(at[d] * pooling_.dilation[d]);
      s.ends.push_back(reach_[d] + at[d] * pooling_.dilation[d]);
      s.steps.push_back(pooling_.stride[d]);
    }
    return s;
  }
  const op::pooling& pooling_;
  dims in_, padded_lens_, reach_;
  inline_vector<dimension, 2 * max_rank> around_, stated_;
  small_vector<op::slice> slices_;
};

void pooling(backward_step& s) {
  const shape in[] = {s.in(0).get_shape()};
  const op::pooling o = s.as<op::pooling>().normalized(in);
  std::int64_t elements = 1;
  for (const std::int64_t n : o.lengths) elements = elements > most_elements ? elements : elements * n;
  if (o.mode == op::pooling_mode::lp || elements > most_elements)
    raise(errc::unsupported, "op 'pooling' has no derivative in mode lp or over windows of more than " +
                                 std::to_string(most_elements) + " elements");
  const windows w(o, in[0].lens, s.slope.get_shape().lens);
  const dtype t = s.slope.type();
  small_vector<value> shares;
  if (o.mode == op::pooling_mode::average) {
    shares = small_vector<value>(w.slices().size());
    const value each = s.slope / w.counts(s.build, t);
    for (value& v : shares) v = each;
  } else {  // equal elements share
    const value x = w.padded(s.in(0), -std::numeric_limits<double>::infinity());
    value ties;
    for (const op::slice& part : w.slices()) {
      shares.push_back(x.slice(part).equal(s.out()).convert(t));
      ties = ties ? ties + shares.back() : shares.back();
    }
    for (value& v : shares) v = v * (s.slope / ties);
  }
  value sum;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    const value part = unsliced(shares[k], w.slices()[k], w.padded_lens());
    sum = sum ? sum + part : part;
  }
  s.give(0, w.cropped(sum));
}

constexpr gradient_rule rules[] = {{"pooling", pooling}};

}  // namespace

std::span<const gradient_rule> window_gradients() { return rules; }

}  // namespace kiln::detail
