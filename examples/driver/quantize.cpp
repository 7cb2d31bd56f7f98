#include <fmt/format.h>

#include <filesystem>

#include "json.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/mixed.hpp"
#include "kiln/quantize/precision.hpp"
#include "kiln/quantize/table.hpp"
#include "model.hpp"
#include "overrides.hpp"
#include "progress.hpp"
#include "samples.hpp"

namespace kiln::driver {

namespace {

std::vector<port> inputs_of(const program& p) {
  std::vector<port> out;
  for (const value_id v : p.main().parameters()) out.push_back({p.main().producer(v).name.str(), p.main().shape_of(v)});
  return out;
}

// What is given has a use, and what a use needs is given, before anything long is done.
void check_wishes(const quantize_command& c) {
  const std::string_view to = to_string(c.precision);
  const bool takes_ranges = quantize::takes_ranges(c.precision);
  const bool samples = !c.data.empty() || !c.inputs.empty();
  for (const auto& [option, value] : {std::pair("--table", &c.table), std::pair("--save-table", &c.save_table)})
    if (!takes_ranges && !value->empty())
      raise(errc::invalid_argument, fmt::format("{} is of ranges: --to {} needs none", option, to));
  if (!c.save_table.empty() && c.table.empty() && !samples)
    raise(errc::invalid_argument, "--save-table writes ranges: give samples with --data, or ranges with --table");
  if (c.smooth && !samples) raise(errc::invalid_argument, "--smooth-quant needs samples: give them with --data");
  if (c.no_smooth_folding && !c.smooth) raise(errc::invalid_argument, "--no-smooth-quant-folding is of --smooth-quant");
  if (c.smooth && !c.table.empty())
    raise(errc::invalid_argument, "--smooth-quant changes the ranges that --table says: give samples alone");
  if (c.min_sqnr && !samples) raise(errc::invalid_argument, "--min-sqnr compares on samples: give them with --data");
  if (c.report && !samples) raise(errc::invalid_argument, "--report compares on samples: give them with --data");
  const bool by_samples = c.precision == quantize::precision::int4 && c.int4.method == quantize::weight_method::gptq;
  if (by_samples && !samples)
    raise(errc::invalid_argument, "--weight-method gptq needs samples: give them with --data");
  if (!c.data.empty() && !c.report && !c.min_sqnr && !by_samples && (!takes_ranges || !c.table.empty()))
    raise(errc::invalid_argument, !takes_ranges ? fmt::format("--data has no use: --to {} needs no ranges", to)
                                                : "--data has no use: the ranges are those of --table");
}

// Ops of fp16 and bf16 are any of the program's; those of integers the library checks.
void check_ops(const quantize_command& c, const program& p) {
  if (c.precision != quantize::precision::f16 && c.precision != quantize::precision::bf16) return;
  for (const std::string& name : c.ops) {
    bool known = false;
    for (std::uint32_t k = 0; k < p.modules(); ++k)
      for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
        const auto& ins = p.module({k})[i];
        known = known || (ins.kind == instruction_kind::op && ins.op.name() == name);
      }
    if (!known) raise(errc::not_found, fmt::format("--ops {}: {} has no such op", name, c.model));
  }
}

// The ranges that were asked for: of a table, or of samples.
quantize::ranges ranges_of(const quantize_command& c, const program& prepared, const quantize::precision_options& how,
                           const target& where) {
  if (!c.table.empty()) return quantize::read_table(c.table);
  if ((c.data.empty() && c.inputs.empty()) || !quantize::takes_ranges(c.precision)) return {};
  const auto watched = quantize::values_with_ranges(prepared, how);
  if (watched.empty()) return {};
  const auto line = std::make_shared<progress_line>();
  return with_samples(samples_of(c, c.data, inputs_of(prepared)), [&](const quantize::calibration_data& data) {
    return quantize::calibrate(prepared, watched, where, data, c.calibration, compile_options_of(c), 0,
                               [line](std::size_t n) { line->show(fmt::format("calibrating: {} samples", n)); });
  });
}

// Weights in blocks, by samples if the method needs them.
quantize::quantized_program in_blocks(const quantize_command& c, const program& prepared,
                                      const quantize::int4_options& int4, const target& where) {
  if (int4.method != quantize::weight_method::gptq) return quantize::to_int4(prepared, int4);
  return with_samples(samples_of(c, c.data, inputs_of(prepared)), [&](const quantize::calibration_data& data) {
    return quantize::to_int4(prepared, int4, data, where);
  });
}

// int8 but for the products without which outputs are not near enough.
quantize::mixed_program near_enough(const quantize_command& c, const program& prepared,
                                    const quantize::precision_options& how, const target& where) {
  const quantize::repeated_data data = [&] { return samples_of(c, c.data, inputs_of(prepared)).next; };
  return quantize::to_int8_within(prepared, *c.min_sqnr, how.known, how.int8, data, where, compile_options_of(c));
}

// Ranges moved from values to weights, as samples show the channels of the former.
quantize::quantized_program smooth(const quantize_command& c, const program& prepared, const target& where) {
  quantize::smooth_options how = *c.smooth;
  how.fold = !c.no_smooth_folding;
  return with_samples(samples_of(c, c.data, inputs_of(prepared)), [&](const quantize::calibration_data& data) {
    const quantize::ranges channels = quantize::calibrate(prepared, quantize::values_to_smooth(prepared), where, data,
                                                          quantize::channel_calibration(), compile_options_of(c));
    return quantize::smoothed(prepared, channels, how);
  });
}

json counts_of(const pass_note& note) {
  json out = json::object();
  for (const auto& e : note.counts.entries) out[std::string(e.name)] = e.count;
  return out;
}

// Of values, those divided and those whose makers are.
std::int64_t smoothed_values(const pass_note& note) {
  std::int64_t n = 0;
  for (const auto& e : note.counts.entries)
    if (e.name == "values" || e.name == "folded") n += e.count;
  return n;
}

}  // namespace

int quantize(const quantize_command& c) {
  check_wishes(c);
  onnx::imported model = import_model(c);
  const std::shared_ptr<const target> where(named_target(c.target, c.compiling));
  program prepared = quantize::prepared(model.graph);
  check_ops(c, prepared);
  quantize::int8_options int8 = c.int8;
  int8.exclude = quantize::prepared_names(model.graph, prepared, int8.exclude);
  int8.only = quantize::prepared_names(model.graph, prepared, int8.only);
  if (!c.ops.empty()) int8.ops = c.ops;
  int8.results = c.form == onnx::quantized_form::qoperator;
  if (!c.overrides.empty()) int8.overrides = read_overrides(c.overrides);
  pass_note smoothing("smooth");
  if (c.smooth) {
    quantize::quantized_program made = smooth(c, prepared, *where);
    prepared = std::move(made.graph);
    smoothing = std::move(made.note);
  }
  quantize::precision_options how{.to = c.precision, .int8 = int8, .ops = c.ops, .is_prepared = true};
  how.fp8 = {c.fp8.type, int8.weights.per_channel, int8.products_of_values, int8.ops, int8.exclude, int8.only};
  how.float_blocks = {c.ops.empty() ? how.float_blocks.ops : c.ops, int8.exclude, c.compiling.threads};
  how.known = ranges_of(c, prepared, how, *where);
  if (!c.save_table.empty()) quantize::write_table(c.save_table, how.known, c.table_form, c.calibration.method);
  quantize::int4_options int4 = c.int4;
  int4.exclude = int8.exclude;
  if (!c.ops.empty()) int4.ops = c.ops;
  int4.threads = c.compiling.threads;
  const bool blocks = c.precision == quantize::precision::int4;
  std::optional<quantize::mixed_program> mixed;
  if (c.min_sqnr) mixed = near_enough(c, prepared, how, *where);
  quantize::quantized_program made = mixed    ? std::move(mixed->made)
                                     : blocks ? in_blocks(c, prepared, int4, *where)
                                              : quantize::with_precision(prepared, how);
  if (smoothing.counts.total() != 0)
    made.note.remark(text(fmt::format("{} values are smoothed", smoothed_values(smoothing))));
  {
    const busy_line busy(fmt::format("writing {}", c.file));
    onnx::write_model(c.file, made.graph, {std::move(model.metadata), c.form});
  }
  std::optional<quantize::accuracy_report> report;
  if (c.report)
    report = with_samples(samples_of(c, c.data, inputs_of(prepared)), [&](const quantize::calibration_data& data) {
      return quantize::compare_accuracy(
          {prepared, made.graph, quantize::float_values(prepared), quantize::float_values(made.graph)}, *where, data,
          compile_options_of(c));
    });
  const auto bytes = std::filesystem::file_size(c.file);
  if (c.json) {
    json remarks = json::array();
    for (const text& r : made.note.remarks) remarks.push_back(r.str());
    json out{{"model", c.model},
             {"file", c.file},
             {"bytes", bytes},
             {"to", to_string(c.precision)},
             {"quantized", counts_of(made.note)}};
    out["remarks"] = remarks;
    if (report) out["accuracy"] = json::parse(quantize::report_json(*report));
    print_json(out);
    return 0;
  }
  fmt::print("{}: {} bytes, {}\n", c.file, bytes, to_string(c.precision));
  for (const auto& e : made.note.counts.entries) fmt::print("  {:>6} {}\n", e.count, e.name);
  for (const text& r : made.note.remarks) fmt::print("  {}\n", r.view());
  if (report) fmt::print("{}", quantize::report_text(*report));
  return 0;
}

}  // namespace kiln::driver
