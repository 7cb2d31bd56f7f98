#include "kiln/quantize/precision.hpp"

#include "kiln/pass/narrow_floats.hpp"
#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

quantized_program in_narrow_floats(program p, const precision_options& options) {
  narrow_float_options how{.to = options.to == precision::f16 ? dtype::f16 : dtype::bf16};
  for (const std::string& op : options.ops) how.ops.push_back(text(op));
  quantized_program out;
  if (options.to == precision::f16)
    for (const watched_value& w : float_values(p)) {
      const auto at = options.known.find(w.name);
      if (at == options.known.end() || !(at->second.whole.magnitude() > greatest_narrow(how.to))) continue;
      how.beyond.push_back(w.value);
      out.note.remark(text("'")
                          .append(w.name)
                          .append(std::string_view("' stays in "))
                          .append(to_string(p.main().shape_of(w.value).type))
                          .append(std::string_view(", and so does what reads it: its values reach "))
                          .append(at->second.whole.magnitude()));
    }
  pass_note done = narrow_floats(p, how);
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace

precision precision_named(std::string_view name) { return detail::named(name, precisions, "precision"); }

std::vector<watched_value> values_with_ranges(const program& p, const precision_options& options) {
  if (options.to == precision::int8) return values_to_quantize(p, options.int8);
  if (options.to == precision::fp8) return values_to_quantize(p, options.fp8);
  return takes_ranges(options.to) ? float_values(p) : std::vector<watched_value>{};
}

quantized_program with_precision(program p, const precision_options& options) {
  if (options.to == precision::as_written) return {std::move(p), pass_note("quantize")};
  if (!options.is_prepared) p = prepared(std::move(p));
  if (options.to == precision::dynamic_int8) return to_dynamic_int8(std::move(p), options.int8);
  if (options.to == precision::int4) return to_int4(std::move(p), options.int4);
  const precision_info& info = info_of(options.to);
  if (info.blocks) return to_float_blocks(std::move(p), *info.blocks, options.float_blocks);
  if (!info.needs_ranges) return in_narrow_floats(std::move(p), options);
  if (options.known.empty() && !values_with_ranges(p, options).empty())
    raise(errc::invalid_argument,
          std::string(info.name) + " needs the ranges of values: calibrate the program, or give a calibration table");
  if (options.to == precision::fp8) return to_fp8(std::move(p), options.known, options.fp8);
  return to_int8(std::move(p), options.known, options.int8);
}

std::vector<std::string> remarks_on(precision to, const pass_note& note) {
  std::string counts;
  for (const auto& e : note.counts.entries)
    counts.append(counts.empty() ? ": " : ", ").append(std::to_string(e.count)).append(" ").append(e.name);
  std::vector<std::string> out{"in " + std::string(to_string(to)) + (counts.empty() ? ": nothing" : counts)};
  for (const text& r : note.remarks) out.push_back(r.str());
  return out;
}

}  // namespace kiln::quantize
