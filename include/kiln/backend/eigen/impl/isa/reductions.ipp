#include "kiln/backend/eigen/reductions.hpp"
#include "kiln/kernel/reduce/reduction.hpp"

namespace kiln::eigen {
namespace {

using kernels::reduction_kind;
using kernels::reduction_problem;
using reduce_function = void (*)(thread_pool& pool, const reduction_problem& p, std::byte* scratch);

// The sums of prepared elements are folded as sums.
constexpr reduction_kind again(reduction_kind k) {
  return k == reduction_kind::sum_of_magnitudes || k == reduction_kind::sum_of_squares ? reduction_kind::sum : k;
}

template <reduction_kind Kind, class T, class A = T> reduce_function function() {
  return [](thread_pool& pool, const reduction_problem& p, std::byte* scratch) {
    kernels::reducer<T, A, kernels::reduction_step<Kind, T, A>, kernels::reduction_step<again(Kind), A, A>>::run(
        pool, p, reinterpret_cast<A*>(scratch));
  };
}

template <class T> reduce_function function_of(reduction_kind kind, dtype from, dtype to) {
  if (from != to) {
    if constexpr (std::is_integral_v<T>) {
      if (kind == reduction_kind::sum) return function<reduction_kind::sum, T, std::int64_t>();
      if (kind == reduction_kind::sum_of_squares) return function<reduction_kind::sum_of_squares, T, std::int64_t>();
    }
    return nullptr;
  }
  switch (kind) {
    case reduction_kind::sum: return function<reduction_kind::sum, T>();
    case reduction_kind::sum_of_magnitudes: return function<reduction_kind::sum_of_magnitudes, T>();
    case reduction_kind::sum_of_squares: return function<reduction_kind::sum_of_squares, T>();
    case reduction_kind::product: return function<reduction_kind::product, T>();
    case reduction_kind::maximum: return function<reduction_kind::maximum, T>();
    case reduction_kind::minimum: return function<reduction_kind::minimum, T>();
  }
  return nullptr;
}

reduce_function function_of(reduction_kind kind, dtype from, dtype to) {
  switch (from) {
    case dtype::f32: return function_of<float>(kind, from, to);
    case dtype::f64: return function_of<double>(kind, from, to);
    case dtype::i32: return function_of<std::int32_t>(kind, from, to);
    case dtype::i64: return function_of<std::int64_t>(kind, from, to);
    case dtype::u8: return function_of<std::uint8_t>(kind, from, to);
    case dtype::i8: return function_of<std::int8_t>(kind, from, to);
    default: return nullptr;
  }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const reduction_table* kiln_eigen_reductions() {
  static const reduction_table table{
      .serves = [](reduction_kind kind, dtype from, dtype to) { return function_of(kind, from, to) != nullptr; },
      .reduce = [](thread_pool& pool, const reduction_problem& p, dtype from, dtype to,
                   std::byte* scratch) { function_of(p.kind, from, to)(pool, p, scratch); },
  };
  return &table;
}

}  // namespace kiln::eigen
