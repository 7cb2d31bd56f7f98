#include "kiln/backend/eigen/impl/isa/products_definition.hpp"

namespace kiln::eigen {

template product_functions<double> tiled_products();

}  // namespace kiln::eigen
