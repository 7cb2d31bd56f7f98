#include "kiln/backend/eigen/impl/isa/pairs.hpp"

#include "kiln/kernel/pointwise/pair_rows.hpp"
#include "kiln/op/pointwise/max.hpp"
#include "kiln/op/pointwise/min.hpp"

namespace kiln::eigen {
namespace {

// Integers are added and multiplied as unsigned ones, which wrap.
struct sum {
  template <class V> KILN_FN V operator()(V x, V y) const { return x + y; }
};
struct difference {
  template <class V> KILN_FN V operator()(V x, V y) const { return x - y; }
};
struct difference_from {
  template <class V> KILN_FN V operator()(V x, V y) const { return y - x; }
};
struct product {
  template <class V> KILN_FN V operator()(V x, V y) const { return x * y; }
};
struct quotient {
  template <class V> KILN_FN V operator()(V x, V y) const { return x / y; }
};
struct quotient_into {
  template <class V> KILN_FN V operator()(V x, V y) const { return y / x; }
};
struct both {
  template <class V> KILN_FN V operator()(V x, V y) const { return x & y; }
};
struct either {
  template <class V> KILN_FN V operator()(V x, V y) const { return x | y; }
};
struct different {
  template <class V> KILN_FN V operator()(V x, V y) const { return x ^ y; }
};
struct both_true : both {
  static constexpr bool deciding = false;
};
struct either_true : either {
  static constexpr bool deciding = true;
};
struct comparison {
  static constexpr bool compares = true;
};
struct same_as : comparison {
  template <class V> KILN_FN auto operator()(V x, V y) const { return x == y; }
};
struct below : comparison {
  template <class V> KILN_FN auto operator()(V x, V y) const { return x < y; }
};
struct above : comparison {
  template <class V> KILN_FN auto operator()(V x, V y) const { return x > y; }
};
struct at_most : comparison {
  template <class V> KILN_FN auto operator()(V x, V y) const { return x <= y; }
};
struct at_least : comparison {
  template <class V> KILN_FN auto operator()(V x, V y) const { return x >= y; }
};

template <class T, class Function> constexpr pair_function rows = kernels::row_pair_loop<T, Function>::run;

template <class T> pair_function pair_of_numbers(pair_op op) {
  // what is the same for both signs
  using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (op) {
    case pair_op::add: return rows<U, sum>;
    case pair_op::sub: return rows<U, difference>;
    case pair_op::sub_from: return rows<U, difference_from>;
    case pair_op::mul: return rows<U, product>;
    case pair_op::max: return rows<T, op::max>;
    case pair_op::min: return rows<T, op::min>;
    case pair_op::equal: return rows<T, same_as>;
    case pair_op::less: return rows<T, below>;
    case pair_op::greater: return rows<T, above>;
    case pair_op::less_or_equal: return rows<T, at_most>;
    case pair_op::greater_or_equal: return rows<T, at_least>;
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>)
    return op == pair_op::div ? rows<T, quotient> : op == pair_op::div_into ? rows<T, quotient_into> : nullptr;
  else
    switch (op) {
      case pair_op::bitwise_and: return rows<U, both>;
      case pair_op::bitwise_or: return rows<U, either>;
      case pair_op::bitwise_xor: return rows<U, different>;
      default: return nullptr;
    }
}

pair_function pair_of_bytes(pair_op op) {
  using T = std::uint8_t;
  switch (op) {
    case pair_op::max: return rows<T, op::max>;
    case pair_op::min: return rows<T, op::min>;
    case pair_op::bitwise_and: return rows<T, both>;
    case pair_op::bitwise_or: return rows<T, either>;
    case pair_op::bitwise_xor: return rows<T, different>;
    case pair_op::equal: return rows<T, same_as>;
    default: return nullptr;
  }
}

pair_function pair_of_truths(pair_op op) {
  switch (op) {
    case pair_op::bitwise_and: return rows<bool, both_true>;
    case pair_op::bitwise_or: return rows<bool, either_true>;
    case pair_op::bitwise_xor: return rows<bool, different>;
    case pair_op::equal: return rows<bool, same_as>;
    default: return nullptr;
  }
}

}  // namespace

pair_function find_pair(pair_op op, dtype type) {
  switch (type) {
    case dtype::f32: return pair_of_numbers<float>(op);
    case dtype::i64: return pair_of_numbers<std::int64_t>(op);
    case dtype::i32: return pair_of_numbers<std::int32_t>(op);
    case dtype::u8: return pair_of_bytes(op);
    case dtype::boolean: return pair_of_truths(op);
    default: return nullptr;
  }
}

}  // namespace kiln::eigen
