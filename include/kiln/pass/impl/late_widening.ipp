#include "kiln/pass/late_widening.hpp"

#include <utility>

#include "kiln/graph/module.hpp"
#include "kiln/op/pointwise/convert.hpp"

namespace kiln::detail {
namespace {
thread_local bool late = false;
}

late_widening::late_widening(bool wanted) : before_(std::exchange(late, wanted)) {}
late_widening::~late_widening() { late = before_; }

bool widens_late() { return late; }

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
