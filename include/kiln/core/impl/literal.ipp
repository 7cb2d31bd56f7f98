#include "kiln/core/literal.hpp"

namespace kiln {

template void decode(dtype, const std::byte*, double*, std::int64_t);
template void decode(dtype, const std::byte*, float*, std::int64_t);
template void decode(dtype, const std::byte*, std::int64_t*, std::int64_t);
template void decode(dtype, const std::byte*, std::uint64_t*, std::int64_t);
template void decode(dtype, const std::byte*, bool*, std::int64_t);
template void encode(dtype, const double*, std::byte*, std::int64_t);
template void encode(dtype, const float*, std::byte*, std::int64_t);
template void encode(dtype, const std::int64_t*, std::byte*, std::int64_t);
template void encode(dtype, const std::uint64_t*, std::byte*, std::int64_t);
template void encode(dtype, const bool*, std::byte*, std::int64_t);

}  // namespace kiln
