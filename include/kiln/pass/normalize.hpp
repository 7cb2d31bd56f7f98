#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// Writes every op's attributes in their one normal form: axes from the front, ascending and named, empty lists
/// replaced by what they stand for, known slice positions clamped.
template <class Program> constexpr pass_note normalize(Program& p) {
  pass_note note("normalize");
  for_each_module(p, [&](auto& m) {
    shapes in;
    for (std::uint32_t k = 0; k < m.size(); ++k) {
      auto& i = m[k];
      if (i.kind != instruction_kind::op || i.op.kind() >= op_kind::control) continue;
      in.clear();
      for (value_id v : i.inputs) in.push_back(m.shape_of(v));
      auto written_out = i.op;
      written_out.normalize(in, i.results[0]);
      if (written_out == i.op) continue;
      i.op = written_out;
      note.count(i.op.name());
    }
  });
  return note;
}

}  // namespace kiln
