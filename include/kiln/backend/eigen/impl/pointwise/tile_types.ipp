#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"

namespace kiln::eigen {
namespace {

// Integers that have typed tiles and compute in a wider type elsewhere.
bool is_typed_narrow(dtype t) {
  return t == dtype::i32 || t == dtype::i16 || t == dtype::i8 || t == dtype::u32 || t == dtype::u16 || t == dtype::u8;
}

}  // namespace

dtype tile_program::held(dtype t) const {
  if (narrow_ && is_typed_narrow(t)) return t;
  return visit_compute(t, []<class T>(type_tag<T>) { return dtype_of<T>; });
}

bool tile_program::has_floats() const {
  for (const value& v : values_)
    if (is_float(v.type) && v.type != dtype::f64) return true;
  return false;
}

// The calls with functions of the types that `held` gives. False where a call has none: it stays the op's own.
bool tile_program::find_typed_calls(std::vector<call>& to) const {
  const typed_tile_table& typed = *kiln_eigen_typed_tiles();
  bool all = true;
  to = calls_;
  for (call& c : to) {
    const dtype in = values_[c.in[c.kind == call::what::tile ? static_cast<std::size_t>(c.op.info().conditions) : 0]]
                         .type,
                out = values_[c.out].type, from = held(in);
    if (c.kind == call::what::repeat) {
      c.compute = c.natural = from;
      continue;
    }
    const std::size_t op = c.op.table().index;
    bool found = true;
    if (c.kind == call::what::fold) {
      if (c.float_fold) continue;
      c.typed_fold = op < default_registry::size ? typed.fold(op, from) : nullptr;
      found = c.typed_fold;
    } else if (c.op.get_if<op::convert>()) {
      c.convert = typed.convert(from, held(out));
      c.round = held(out) != out ? typed.round(out) : nullptr;
      if (held(out) != out && !c.round) c.convert = nullptr;
      found = c.convert;
    } else {
      if (!c.tile) c.tile = op < default_registry::size ? typed.tile(op, from) : nullptr;
      if (c.natural == c.compute) c.natural = from;
      c.compute = from;
      const bool rounds = c.natural == dtype::f32 && typed.round(out);
      found = c.tile && (rounds || (c.natural == out && held(out) == out));
    }
    all = all && found;
  }
  return all;
}

bool tile_program::compute_in_storage_types(bool all) {
  bool narrow = false;
  for (const value& v : values_) narrow = narrow || is_typed_narrow(v.type);
  std::vector<call> calls;
  narrow_ = narrow;
  bool found = find_typed_calls(calls);
  if (!found && all) return narrow_ = false;
  if (!found && narrow) {
    narrow_ = false;
    find_typed_calls(calls);
  }
  calls_ = std::move(calls);
  return true;
}

}  // namespace kiln::eigen
