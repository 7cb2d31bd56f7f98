#include "kiln/pass/fuse_stored_weights.hpp"

#include <algorithm>
#include <array>

#include "kiln/op/quant/range.hpp"

namespace kiln::detail {

bool are_finite_numbers(const literal& l) {
  const dtype t = l.get_shape().type;
  if (!quantize::is_float8(t)) return true;
  std::array<bool, 256> finite{};
  visit_storage(t, [&]<class T>(type_tag<T>) {
    if constexpr (sizeof(T) == 1 && widening<T>)
      for (std::size_t code = 0; code < finite.size(); ++code) {
        T number;
        number.bits = static_cast<std::uint8_t>(code);
        const auto x = static_cast<float>(static_cast<typename widened_storage<T>::type>(number));
        finite[code] = x - x == 0;
      }
  });
  const std::byte* const codes = l.bytes();
  return std::all_of(codes, codes + l.elements(), [&](std::byte c) { return finite[static_cast<std::size_t>(c)]; });
}

}  // namespace kiln::detail
