#include "kiln/pass/constants_stay_stored.hpp"

#include <utility>

#include "kiln/graph/module.hpp"
#include "kiln/op/pointwise/convert.hpp"

namespace kiln::detail {
namespace {
thread_local bool stay = false;
}

constants_stay_stored::constants_stay_stored(bool wanted) : before_(std::exchange(stay, wanted)) {}
constants_stay_stored::~constants_stay_stored() { stay = before_; }

bool constants_stay() { return stay; }

bool is_left_to_widen(const module_graph& m, std::uint32_t i) {
  if (m[i].kind != instruction_kind::op || !m[i].op.is<op::convert>() || m[i].results[0].type != dtype::f32)
    return false;
  value_id v = m[i].inputs[0];
  while (m.producer(v).kind == instruction_kind::op && is_view(m.producer(v))) v = m.producer(v).inputs[0];
  const auto& from = m.producer(v);
  const dtype stored = m.shape_of(v).type;
  return from.kind == instruction_kind::literal && (stored == dtype::f16 || stored == dtype::bf16) &&
         from.constant.data().size() >= least_late_scales;
}

}  // namespace kiln::detail
