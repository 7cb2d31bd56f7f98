#include <fmt/format.h>

#include <filesystem>

#include "json.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/accuracy.hpp"
#include "kiln/quantize/precision.hpp"
#include "kiln/quantize/table.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "samples.hpp"

namespace kiln::driver {

namespace {

std::vector<port> inputs_of(const program& p) {
  std::vector<port> out;
  for (const value_id v : p.main().parameters()) out.push_back({p.main().producer(v).name.str(), p.main().shape_of(v)});
  return out;
}

// The ranges that were asked for: of a table, or of samples.
quantize::ranges ranges_of(const quantize_command& c, const program& prepared, const quantize::int8_options& int8,
                           const target& where) {
  if (!c.table.empty()) return quantize::read_table(c.table);
  if (c.data.empty() && c.inputs.empty()) return {};
  quantize::calibration_options how = c.calibration;
  for (const auto m : {quantize::calibration_method::min_max, quantize::calibration_method::entropy,
                       quantize::calibration_method::percentile, quantize::calibration_method::distribution})
    if (to_string(m) == c.method) how.method = m;
  const bool halves = quantize::precision_named(c.to) == quantize::precision::f16;
  const auto line = std::make_shared<progress_line>();
  return quantize::calibrate(prepared,
                             halves ? quantize::float_values(prepared) : quantize::values_to_quantize(prepared, int8),
                             where, samples_of(c, c.data, inputs_of(prepared)), how, {}, 0,
                             [line](std::size_t n) { line->show(fmt::format("calibrating: {} samples", n)); });
}

json counts_of(const pass_note& note) {
  json out = json::object();
  for (const auto& e : note.counts.entries) out[std::string(e.name)] = e.count;
  return out;
}

}  // namespace

int quantize(const quantize_command& c) {
  onnx::imported model = import_model(c);
  const std::shared_ptr<const target> where(named_target(c.target, c.compiling));
  const program prepared = quantize::prepared(std::move(model.graph));
  quantize::int8_options int8 = c.int8;
  if (!c.ops.empty()) int8.ops = c.ops;
  quantize::precision_options how{.to = quantize::precision_named(c.to), .known = {}, .int8 = int8, .ops = c.ops};
  how.known = ranges_of(c, prepared, int8, *where);
  if (!c.save_table.empty()) quantize::write_table(c.save_table, how.known, quantize::table_form_named(c.table_form));
  const quantize::quantized_program made = quantize::with_precision(prepared, how);
  {
    const busy_line busy(fmt::format("writing {}", c.file));
    onnx::write_model(c.file, made.graph, {std::move(model.metadata)});
  }
  std::optional<quantize::accuracy_report> report;
  if (c.report) {
    // only names say which values of the two programs are the same
    const auto watched = [](const program& p) {
      std::vector<quantize::watched_value> all = quantize::float_values(p);
      std::erase_if(all, [](const quantize::watched_value& w) { return w.name.starts_with('%'); });
      return all;
    };
    report = quantize::compare_accuracy({prepared, made.graph, watched(prepared), watched(made.graph)}, *where,
                                        samples_of(c, c.data, inputs_of(prepared)));
  }
  const auto bytes = std::filesystem::file_size(c.file);
  if (c.json) {
    json remarks = json::array();
    for (const text& r : made.note.remarks) remarks.push_back(r.str());
    json out{{"model", c.model}, {"file", c.file}, {"bytes", bytes}, {"to", c.to}, {"quantized", counts_of(made.note)}};
    out["remarks"] = remarks;
    if (report) out["accuracy"] = json::parse(quantize::report_json(*report));
    print_json(out);
    return 0;
  }
  fmt::print("{}: {} bytes, {}\n", c.file, bytes, c.to);
  for (const auto& e : made.note.counts.entries) fmt::print("  {:>6} {}\n", e.count, e.name);
  for (const text& r : made.note.remarks) fmt::print("  {}\n", r.view());
  if (report) fmt::print("{}", quantize::report_text(*report));
  return 0;
}

}  // namespace kiln::driver
