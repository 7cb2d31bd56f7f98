#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/core/dtype.hpp"

namespace kiln {
class thread_pool;
}

namespace kiln::eigen {

/// Packs a right operand of f16 or bf16 for `stored_product_table::multiply`, as it is stored and at any address; else
/// as `stored_product_table::pack`.
extern "C" void kiln_eigen_pack_stored(thread_pool& pool, dtype type, std::byte* to, const void* from,
                                       std::ptrdiff_t row, std::ptrdiff_t col, std::int64_t k, std::int64_t n);

}  // namespace kiln::eigen
