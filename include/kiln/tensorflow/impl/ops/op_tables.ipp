#include "kiln/tensorflow/impl/ops/op_tables.hpp"

#include <array>

namespace kiln::tensorflow {

std::span<const op_importer_table> op_importer_tables() {
  static const std::array tables{pointwise_importers(), linear_importers(),  window_importers(), image_importers(),
                                 reduce_importers(),    view_importers(),    slice_importers(),  index_importers(),
                                 fill_importers(),      control_importers(), list_importers(),   variable_importers(),
                                 arrange_importers()};
  return tables;
}

}  // namespace kiln::tensorflow
