#include "kiln/op/dynamic/optional_rank.hpp"

#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

small_vector<argument> optional_rank::produce(std::span<const argument> in) const {
  const argument* held = value_of_optional(in[0]);
  if (!held) raise(errc::invalid_argument, "an optional that is read holds something");
  const auto rank = static_cast<std::int64_t>(held->get_shape().rank());
  return detail::one(argument::of<std::int64_t>({}, std::span<const std::int64_t>(&rank, 1)));
}

}  // namespace kiln::op
