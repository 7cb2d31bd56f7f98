#include "kiln/backend/eigen/impl/isa/products_definition.hpp"

namespace kiln::eigen {

template product_functions<std::uint32_t> tiled_products();

}  // namespace kiln::eigen
