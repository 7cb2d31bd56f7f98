#pragma once
#include "kiln/tensorflow/impl/file/graph_def.hpp"

namespace kiln::tensorflow {

/// Gives the hash tables of a list of nodes, and those of the graph's functions, what the graph's initializers put in:
/// constants, as the tensors of attributes `keys` and `values`, or attribute `fault` says why there are none. Tables of
/// one `shared_name` are one table. Initializers in the list, and tables that nothing else reads, are taken out.
/// `nodes` are the graph's own or copies of them.
void set_tables(graph_def& g, std::vector<onnx::node>& nodes);

}  // namespace kiln::tensorflow
