#include <fmt/format.h>

#include <filesystem>

#include "files.hpp"
#include "json.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/options.hpp"
#include "kiln/quantize/overrides.hpp"
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

// What is given has a use, and what a use needs is given, before anything long is done; the library knows the rest.
void check_wishes(const quantize_command& c) {
  const std::string_view to = to_string(c.precision);
  const bool takes_ranges = quantize::takes_ranges(c.precision);
  const bool samples = !c.data.empty() || !c.inputs.empty();
  for (const auto& [option, value] : {std::pair("--table", &c.table), std::pair("--save-table", &c.save_table)})
    if (!takes_ranges && !value->empty())
      raise(errc::invalid_argument, fmt::format("{} is of ranges: --to {} needs none", option, to));
  if (!c.save_table.empty() && c.table.empty() && !samples)
    raise(errc::invalid_argument, "--save-table writes ranges: give samples with --data, or ranges with --table");
  if (c.report && !samples) raise(errc::invalid_argument, "--report compares on samples: give them with --data");
  if (!c.svg.empty() && !samples) raise(errc::invalid_argument, "--svg compares on samples: give them with --data");
}

// All that the flags say, as the library has it.
quantize::quantizer_options options_of(const quantize_command& c) {
  quantize::quantizer_options out = c.how;
  out.how.to = c.precision;
  if (c.precision == quantize::precision::int8) out.how.int8.results = c.form == onnx::quantized_form::qoperator;
  if (!c.overrides.empty()) {
    const std::vector<std::byte> text = read_file(c.overrides);
    out.how.int8.overrides =
        quantize::parse_overrides({reinterpret_cast<const char*>(text.data()), text.size()}, c.overrides);
  }
  quantize::check_use(out);
  return out;
}

// A line with a bar on a terminal.
quantize::quantizer_progress progress_of(const sample_source& from) {
  return [line = std::make_shared<progress_line>(), all = from.count](std::string_view what, std::size_t done) {
    line->show(fmt::format("{} {}: {} of {} samples", progress_bar(done, all), what, done, all));
  };
}

quantize::accuracy_report accuracy_of(const quantize_command& c, const quantize::quantization& q,
                                      const sample_source& samples, const target& where) {
  return with_samples(samples, [&](const quantize::calibration_data& data) {
    return quantize::compare_accuracy(quantize::question_of(q.prepared, q.made.graph), where, data,
                                      compile_options_of(c),
                                      [told = progress_of(samples)](std::size_t done) { told("comparing", done); });
  });
}

json counts_of(const pass_note& note) {
  json out = json::object();
  for (const auto& e : note.counts.entries) out[std::string(e.name)] = e.count;
  return out;
}

}  // namespace

int quantize(const quantize_command& c) {
  check_wishes(c);
  const quantize::quantizer_options how = options_of(c);
  onnx::imported model = import_model(c);
  const std::shared_ptr<const target> where(named_target(c.target, c.compiling));
  const quantize::quantizer maker(model.graph, how, *where, compile_options_of(c));
  const quantize::ranges known = c.table.empty() ? quantize::ranges() : quantize::read_table(c.table);
  const sample_source samples = samples_of(c, c.data, inputs_of(maker.prepared()));
  const bool compares = c.report || !c.svg.empty();
  const bool given = maker.reads_samples(known) ? samples.count != 0 : !c.data.empty() && !compares;
  quantize::quantization made = with_repeated_samples(samples, [&](const quantize::repeated_data& again) {
    return maker.quantize(known, given ? again : quantize::repeated_data(), progress_of(samples));
  });
  if (!c.save_table.empty()) quantize::write_table(c.save_table, made.known, c.table_form, how.calibration.method);
  {
    const busy_line busy(fmt::format("writing {}", c.file));
    onnx::write_model(c.file, made.made.graph, {std::move(model.metadata), c.form});
  }
  std::optional<quantize::accuracy_report> report = std::move(made.report);
  if (compares && !report) report = accuracy_of(c, made, samples, *where);
  if (!c.svg.empty()) write_file(c.svg, quantize::report_svg(made.prepared, *report));
  const auto bytes = std::filesystem::file_size(c.file);
  if (c.json) {
    json remarks = json::array();
    for (const text& r : made.made.note.remarks) remarks.push_back(r.str());
    json out{{"model", c.model},
             {"file", c.file},
             {"bytes", bytes},
             {"to", to_string(c.precision)},
             {"quantized", counts_of(made.made.note)}};
    out["remarks"] = remarks;
    if (c.report) out["accuracy"] = json::parse(quantize::report_json(*report));
    print_json(out);
    return 0;
  }
  fmt::print("{}: {} bytes, {}\n", c.file, bytes, to_string(c.precision));
  for (const auto& e : made.made.note.counts.entries) fmt::print("  {:>6} {}\n", e.count, e.name);
  for (const text& r : made.made.note.remarks) fmt::print("  {}\n", r.view());
  if (c.report) fmt::print("{}", quantize::report_text(*report));
  return 0;
}

}  // namespace kiln::driver
