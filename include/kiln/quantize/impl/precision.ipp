#include "kiln/quantize/precision.hpp"

#include "kiln/pass/narrow_floats.hpp"

namespace kiln::quantize {
namespace {

constexpr double greatest_half = 65504;

quantized_program in_narrow_floats(program p, const precision_options& options) {
  optimize(p, {.fuse = false});
  narrow_float_options how{.to = options.to == precision::f16 ? dtype::f16 : dtype::bf16};
  for (const std::string& op : options.ops) how.ops.push_back(text(op));
  quantized_program out;
  if (options.to == precision::f16)
    for (const watched_value& w : float_values(p)) {
      const auto at = options.known.find(w.name);
      if (at == options.known.end() || !(at->second.whole.magnitude() > greatest_half)) continue;
      how.in_wide.push_back(w.value.instruction);
      out.note.remark(text("'" + w.name + "' stays in wide floats: its values reach " +
                           std::to_string(at->second.whole.magnitude())));
    }
  pass_note done = narrow_floats(p, how);
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace

precision precision_named(std::string_view name) {
  for (const precision p : {precision::as_written, precision::f16, precision::bf16, precision::int8})
    if (to_string(p) == name) return p;
  raise(errc::invalid_argument, "a precision is as_written, fp16, bf16 or int8: found '" + std::string(name) + "'");
}

quantized_program with_precision(program p, const precision_options& options) {
  if (options.to == precision::as_written) return {std::move(p), pass_note("quantize")};
  if (options.to != precision::int8) return in_narrow_floats(std::move(p), options);
  if (options.known.empty())
    raise(errc::invalid_argument,
          "int8 needs the ranges of values: calibrate the program, or give a calibration table");
  return to_int8(prepared(std::move(p)), options.known, options.int8);
}

}  // namespace kiln::quantize
