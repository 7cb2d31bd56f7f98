#include "kiln/graph/builder.hpp"

namespace kiln::detail {

void settle_extents(module_graph& m, const operation& op, small_vector<value_id>& ids, std::string_view label) {
  if (!op.table().agree) return;
  small_vector<dims> given;
  bool known = true;
  for (const value_id v : ids) {
    if (!v) return;
    given.push_back(m.shape_of(v).lens);
    known = known && is_constant(given.back());
  }
  if (known) return;
  extent_agreement extents(given);
  // a number that is met late is handed back to who agreed before
  for (int round = 0; round < 2; ++round) op.table().agree(op.data(), extents);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!(extents.wanted(i) == given[i])) ids[i] = m.add(op::expect_dims{extents.wanted(i)}, {ids[i]}, label);
}

}  // namespace kiln::detail
