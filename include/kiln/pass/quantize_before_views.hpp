#pragma once
#include "kiln/pass/constants.hpp"
#include "kiln/pass/fusion_group.hpp"

namespace kiln {

namespace detail {

/// The ops by which a value becomes bytes, from the last one back to what rearranges the floats that it is made of:
/// pointwise ops of one value and numbers.
template <class R> class quantized_view {
 public:
  constexpr explicit quantized_view(R& r) : r_(r) {}

  /// Computes the bytes `v` before their floats are rearranged, where that is all that happens to these.
  constexpr bool move(value_id v) {
    const auto is_byte = [](dtype t) { return t == dtype::u8 || t == dtype::i8; };
    if (!r_.template get_if<op::convert>(v) || !is_byte(r_.shape_of(v).type)) return false;
    value_id at = v;
    for (; r_.is_kind(at, op_kind::pointwise); at = r_.input(at, varying_)) {
      if (chain_.size() == most_ops || (!(at == v) && !r_.single_use(at)) || !find_varying(at)) return false;
      chain_.push_back({at, varying_});
    }
    small_vector<typename R::operation> views;
    for (; r_.is_kind(at, op_kind::view); at = r_.input(at, 0)) {
      // each element once: what repeats or drops some would change the work
      if (!r_.single_use(at) || !(r_.shape_of(at).elements() == r_.shape_of(r_.input(at, 0)).elements())) return false;
      views.push_back(r_.producer(at).op);
    }
    if (views.empty() || !r_.single_use(at)) return false;
    if (!r_.is_kind(at, op_kind::contraction) && !r_.is_kind(at, op_kind::pointwise)) return false;
    for (std::size_t k = chain_.size(); k-- > 0;) at = again(chain_[k], at);
    for (std::size_t k = views.size(); k-- > 0;) at = r_.add(views[k], {at});
    r_.replace(v, at);
    return true;
  }

 private:
  static constexpr std::size_t most_ops = 8;
  struct link {
    value_id op;
    std::size_t varying;  // which operand is no number
  };

  constexpr bool find_varying(value_id v) {
    std::size_t found = 0;
    for (std::size_t k = 0; k < r_.producer(v).inputs.size(); ++k)
      if (!uniform_value(r_, r_.input(v, k))) varying_ = k, ++found;
    return found == 1;
  }
  constexpr value_id again(const link& l, value_id on) {
    const auto op = r_.producer(l.op).op;
    const text name = r_.producer(l.op).name;
    small_vector<value_id> in = r_.producer(l.op).inputs;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (k == l.varying) {
        in[k] = on;
        continue;
      }
      const value_id number = r_.add_literal(literal::scalar(r_.shape_of(in[k]).type, *uniform_value(r_, in[k])));
      in[k] = r_.add(op::multibroadcast{r_.shape_of(on).lens}, {number});
    }
    return r_.add(op, std::move(in), name.view());
  }

  R& r_;
  std::size_t varying_ = 0;
  small_vector<link> chain_;
};

}  // namespace detail

/// Quantizes what a contraction or a pointwise op gives before it is rearranged, not after: heads that are split or
/// joined between a product and the bytes that attention reads. The product's epilogue then ends in the bytes.
template <class Program> constexpr pass_note quantize_before_views(Program& p) {
  pass_note note("quantize_before_views");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    if (r[i].kind == instruction_kind::op &&
        detail::quantized_view<std::remove_reference_t<decltype(r)>>(r).move({i, 0}))
      note.count("quantized");
  });
  return note;
}

}  // namespace kiln
