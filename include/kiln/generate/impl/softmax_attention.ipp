#include "kiln/generate/impl/softmax_attention.hpp"

#include <limits>

#include "kiln/op/linear/dot.hpp"
#include "kiln/op/nn/attention.hpp"
#include "kiln/op/pointwise/add.hpp"
#include "kiln/op/pointwise/div.hpp"
#include "kiln/op/pointwise/equal.hpp"
#include "kiln/op/pointwise/exp.hpp"
#include "kiln/op/pointwise/max.hpp"
#include "kiln/op/pointwise/mul.hpp"
#include "kiln/op/pointwise/sub.hpp"
#include "kiln/op/pointwise/tanh.hpp"
#include "kiln/op/pointwise/where.hpp"
#include "kiln/op/reduce/reduce_max.hpp"
#include "kiln/op/reduce/reduce_sum.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/transpose.hpp"

namespace kiln::language::detail {

namespace {

// Follows a softmax with sinks and bounded scores from its product with the values back to the queries.
class softmax_matcher {
 public:
  explicit softmax_matcher(const rewriter<module_graph>& r) : r_(r) {}

  std::optional<found_attention> match(value_id y) {
    if (!is<op::dot>(y) || r_.shape_of(y).rank() != 4) return std::nullopt;
    found_.v = r_.input(y, 1);
    value_id p = r_.input(y, 0), guard;
    if (is<op::where>(p)) guard = r_.input(p, 0), p = r_.input(p, 2);  // rows without keys are zero
    if (!is<op::div>(p)) return std::nullopt;
    const value_id e = r_.input(p, 0);
    if (!is<op::exp>(e) || !is<op::sub>(r_.input(e, 0))) return std::nullopt;
    const value_id masked = r_.input(r_.input(e, 0), 0), top = narrow(r_.input(r_.input(e, 0), 1));
    if (!top_is_of(top, masked) || !sum_is_of(narrow(r_.input(p, 1)), e, top)) return std::nullopt;
    if (guard && !guards(narrow(guard), top)) return std::nullopt;
    if (!scores_are(masked)) return std::nullopt;
    return found_;
  }

 private:
  template <class Op> bool is(value_id v) const { return r_.get_if<Op>(v) != nullptr; }
  // Before it was repeated.
  value_id narrow(value_id v) const {
    while (is<op::multibroadcast>(v)) v = r_.input(v, 0);
    return v;
  }
  std::optional<float> number(value_id v) const {
    const literal* l = r_.constant(narrow(v));
    if (!l || l->elements() != 1 || l->has_symbols()) return std::nullopt;
    return l->to<float>()[0];
  }
  bool is_hidden(value_id v) const { return number(v) == -std::numeric_limits<float>::infinity(); }
  template <class Op> bool reduces(value_id v, value_id of) const {
    const auto* op = r_.get_if<Op>(v);
    return op && op->axes.size() == 1 && normal_axis(op->axes[0], 4) == 3 && r_.input(v, 0) == of;
  }
  bool top_is_of(value_id top, value_id masked) {
    if (!is<op::max>(top)) return reduces<op::reduce_max>(top, masked);
    for (std::size_t k = 0; k < 2; ++k)
      if (reduces<op::reduce_max>(r_.input(top, k), masked)) {
        found_.sinks = narrow(r_.input(top, 1 - k));
        return r_.shape_of(found_.sinks).rank() == 4 &&
               r_.shape_of(found_.sinks).elements() == r_.shape_of(found_.sinks).lens[1];
      }
    return false;
  }
  bool sum_is_of(value_id sum, value_id e, value_id top) const {
    if (!found_.sinks) return reduces<op::reduce_sum>(sum, e);
    if (!is<op::add>(sum)) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      const value_id other = r_.input(sum, 1 - k);
      if (reduces<op::reduce_sum>(r_.input(sum, k), e) && is<op::exp>(other) && is<op::sub>(r_.input(other, 0)))
        return narrow(r_.input(r_.input(other, 0), 0)) == found_.sinks &&
               narrow(r_.input(r_.input(other, 0), 1)) == top;
    }
    return false;
  }
  bool guards(value_id guard, value_id top) const {
    return is<op::equal>(guard) && ((narrow(r_.input(guard, 0)) == top && is_hidden(r_.input(guard, 1))) ||
                                    (narrow(r_.input(guard, 1)) == top && is_hidden(r_.input(guard, 0))));
  }
  // Masks, then the bound, then the scale of the product of queries and keys.
  bool scores_are(value_id s) {
    for (;;) {
      if (is<op::where>(s) && is_hidden(r_.input(s, 2))) {
        found_.masks.push_back(narrow(r_.input(s, 0)));
        s = r_.input(s, 1);
      } else if (is<op::add>(s)) {
        const bool first = is_score(r_.input(s, 0));
        found_.masks.push_back(narrow(r_.input(s, first ? 1 : 0)));
        s = r_.input(s, first ? 0 : 1);
      } else {
        break;
      }
    }
    value_id other;
    if (const auto cap = factor(s, other); cap && is<op::tanh>(other)) {
      value_id inner = r_.input(other, 0);
      if (const auto by = factor(inner, other); by && std::abs(*by * *cap - 1) < 1e-5F)
        inner = other;
      else if (is<op::div>(inner) && number(r_.input(inner, 1)) == cap)
        inner = r_.input(inner, 0);
      else
        return false;
      if (!(*cap > 0)) return false;
      found_.softcap = *cap;
      s = inner;
    }
    if (const auto scale = factor(s, other)) found_.scale = *scale, s = other;
    if (!is<op::dot>(s)) return false;
    found_.q = r_.input(s, 0), found_.k = r_.input(s, 1);
    const auto* turned = r_.get_if<op::transpose>(found_.k);
    found_.is_k_turned = !turned || !(turned->permutation == ints{0, 1, 3, 2});
    if (!found_.is_k_turned) found_.k = r_.input(found_.k, 0);
    return true;
  }
  bool is_score(value_id v) const { return is<op::mul>(v) || is<op::dot>(v); }
  // The constant that a value is a multiple of, and of what.
  std::optional<float> factor(value_id v, value_id& of) const {
    if (!is<op::mul>(v)) return std::nullopt;
    for (std::size_t k = 0; k < 2; ++k)
      if (const auto by = number(r_.input(v, k))) return of = r_.input(v, 1 - k), by;
    return std::nullopt;
  }

  const rewriter<module_graph>& r_;
  found_attention found_;
};

}  // namespace

std::optional<found_attention> find_attention(const rewriter<module_graph>& r, std::uint32_t at) {
  const value_id y{at, 0};
  const auto* op = r.get_if<op::attention>(y);
  if (!op) return softmax_matcher(r).match(y);
  found_attention out;
  out.q = r.input(y, 0), out.k = r.input(y, 1), out.v = r.input(y, 2);
  if (r[at].inputs.size() > 3) out.masks.push_back(r.input(y, 3));
  out.scale = op->scale, out.causal = op->causal;
  return out;
}

}  // namespace kiln::language::detail
