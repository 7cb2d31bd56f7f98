#include "kiln/op/evaluation.hpp"

namespace kiln {

void evaluation::finish() {
  for (pending& p : pending_) {
    const operand& o = outputs_[p.result];
    const std::int64_t n = o.type.elements().value();
    if (p.f32) encode(o.type.type, p.f32, o.bytes, n);
    if (p.f64) encode(o.type.type, p.f64, o.bytes, n);
    if (p.i64) encode(o.type.type, p.i64, o.bytes, n);
    if (p.u64) encode(o.type.type, p.u64, o.bytes, n);
    if (p.boolean) encode(o.type.type, p.boolean, o.bytes, n);
  }
}

}  // namespace kiln
