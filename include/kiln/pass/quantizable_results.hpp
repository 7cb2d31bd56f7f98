#pragma once
#include "kiln/pass/insert_quantization.hpp"

namespace kiln {

/// A value that is quantized beside the operands of products, by a range of its own or with the scale of another.
struct quantizable_result {
  value_id value, like;  ///< `like` is empty where the value has a range of its own
};

namespace detail {

template <class Module> class result_finder {
 public:
  constexpr result_finder(Module& m, const small_vector<value_id>& products) : r_(m), products_(products) {
    for (std::uint32_t i = 0; i < r_.size(); ++i) scale_of_.push_back({});
    for (const value_id v : products_) own(quantized_operand(r_, v));
  }

  constexpr small_vector<quantizable_result> run() {
    for (std::uint32_t i = 0; i < r_.size(); ++i) {
      const value_id v{i, 0};
      if (r_[i].kind != instruction_kind::op || r_.shape_of(v).type != dtype::f32) continue;
      if (const value_id from = moved_of(v))
        add(v, bytes_of(from));
      else if (is_product(v))
        add(end_of(with_bias(v)), {});
      else if (reads_bytes(v))
        add(end_of(v), {});
    }
    return std::move(found_);
  }

 private:
  // The value whose scale the integers of a value have, or empty where it has none.
  constexpr value_id bytes_of(value_id v) const {
    while (is_view(r_.producer(v))) v = r_.input(v, 0);
    return v.result == 0 ? scale_of_[v.instruction] : value_id{};
  }
  constexpr void own(value_id v) {
    if (v.result == 0) scale_of_[v.instruction] = v;
  }
  constexpr void add(value_id v, value_id like) {
    if (!like && scale_of_[v.instruction]) return;  // of a product's operand
    bool is_read = false;
    for (const std::uint32_t u : r_.users(v.instruction)) is_read = is_read || u != user_lists::output_user;
    if (!is_read) return;
    scale_of_[v.instruction] = like ? like : v;
    found_.push_back({v, like});
  }
  constexpr bool is_product(value_id v) const {
    for (const value_id p : products_)
      if (p == v) return true;
    return false;
  }
  // The only op that reads a value, or empty.
  constexpr value_id only_reader(value_id v) const {
    const auto users = r_.users(v.instruction);
    const bool one = users.size() == 1 && *users.begin() != user_lists::output_user;
    return one ? value_id{*users.begin(), 0} : value_id{};
  }
  constexpr bool is_constant(value_id v) const { return static_cast<bool>(viewed_constant(r_, v)); }
  constexpr value_id with_bias(value_id v) const {
    const value_id u = only_reader(v);
    if (!u || !r_.template get_if<op::add>(u)) return v;
    return is_constant(r_.input(u, 0)) || is_constant(r_.input(u, 1)) ? u : v;
  }
  // The activation that follows a value and that bounds of its integers can be.
  constexpr value_id end_of(value_id v) const {
    const value_id u = only_reader(v);
    if (!u) return v;
    const bool clips = r_.template get_if<op::clip>(u) && is_constant(r_.input(u, 1)) && is_constant(r_.input(u, 2));
    return r_.template get_if<op::relu>(u) || clips ? u : v;
  }
  // What an op only moves or chooses from, if that has integers.
  constexpr value_id moved_of(value_id v) const {
    const auto* const pool = r_.template get_if<op::pooling>(v);
    const auto* const around = r_.template get_if<op::pad>(v);
    const bool pads = around && (r_.producer(v).inputs.size() == 1 || uniform_value(r_, r_.input(v, 1)) == 0.0);
    if (!(pool && pool->mode == op::pooling_mode::max) && !pads && !r_.template get_if<op::gather>(v)) return {};
    return bytes_of(r_.input(v, 0)) ? r_.input(v, 0) : value_id{};
  }
  constexpr bool all_bytes(value_id v, std::size_t first = 0) const {
    const auto& in = r_.producer(v).inputs;
    for (std::size_t k = first; k < in.size(); ++k)
      if (!bytes_of(in[k])) return false;
    return true;
  }
  constexpr bool reads_bytes(value_id v) const {
    if (r_.template get_if<op::where>(v)) return all_bytes(v, 1);
    const auto* const pool = r_.template get_if<op::pooling>(v);
    const bool is_one = r_.template get_if<op::add>(v) || r_.template get_if<op::mul>(v) ||
                        r_.template get_if<op::sigmoid>(v) || r_.template get_if<op::leaky_relu>(v) ||
                        r_.template get_if<op::concat>(v) || (pool && pool->mode == op::pooling_mode::average) ||
                        is_global_pooling(v);
    return is_one ? all_bytes(v) : bool(softmax_operand(v));
  }
  constexpr bool is_global_pooling(value_id v) const {
    const auto* const mean = r_.template get_if<op::reduce_mean>(v);
    const std::size_t rank = r_.shape_of(v).rank();
    if (!mean || rank < 3 || mean->axes.size() + 2 != rank) return false;
    for (std::size_t d = 0; d + 2 < rank; ++d)
      if (normal_axis(mean->axes[d], rank) != static_cast<std::int64_t>(d) + 2) return false;
    return true;
  }
  // What a softmax is of, if that has integers.
  constexpr value_id softmax_operand(value_id v) const {
    if (!r_.template get_if<op::div>(v)) return {};
    const value_id exponential = r_.input(v, 0);
    if (!r_.template get_if<op::exp>(exponential) || !r_.template get_if<op::sub>(r_.input(exponential, 0))) return {};
    const value_id from = r_.input(r_.input(exponential, 0), 0);
    return bytes_of(from) ? from : value_id{};
  }

  const rewriter<Module> r_;
  const small_vector<value_id>& products_;
  small_vector<value_id> scale_of_;  // by instruction
  small_vector<quantizable_result> found_;
};

}  // namespace detail

/// What else can be integers where products read and write them, in order: the results of products with their biases
/// and activations, of sums, means and their like whose operands are integers, and what is only moved or chosen of
/// them, which keeps their scale.
template <class Module>
constexpr small_vector<quantizable_result> quantizable_results(Module& m, const small_vector<value_id>& products) {
  return detail::result_finder<Module>(m, products).run();
}

}  // namespace kiln
