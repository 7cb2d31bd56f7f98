#include "kiln/graph/builder.hpp"

namespace kiln {

template class basic_module<operation>;
template class basic_program<operation>;
template class basic_builder<program>;

}  // namespace kiln
