#include "model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "debug.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/quantize/table.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/runtime/tuner.hpp"
#include "progress.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {
// Shape arithmetic is about this long at most; longer inputs are data.
constexpr std::int64_t most_known_elements = 64, most_known_reals = 16;

// Which inputs' values an import may use: integers first, small lists of reals (scales) only where those don't do.
enum class known_values { none, integers, reals };

bool is_known(const argument& value, known_values which) {
  const shape& type = value.get_shape();
  if (is_integer(type.type)) return which != known_values::none && value.elements() <= most_known_elements;
  return which == known_values::reals && type.rank() <= 1 && value.elements() <= most_known_reals;
}
}  // namespace

namespace {
onnx::imported import_knowing(const model_options& o, const named_arguments& known, known_values which) {
  tensorflow::import_options all;
  all.layout = o.layout;
  all.open_extent = o.batch;
  all.outputs = o.output_names;
  all.signature = o.signature;
  all.tag = o.tag;
  onnx::import_options& options = all.common;
  options.dimensions = o.dims;
  for (const auto& [name, file] : o.inputs) options.overrides.push_back(name);
  for (const auto& [name, lens] : o.shapes) {
    if (lens.size() > max_rank) raise(errc::limit, fmt::format("--shape {}: more than {} dims", name, max_rank));
    options.shapes.emplace_back(name, to_dims(lens));
  }
  for (const auto& [name, value] : known) {
    const shape& type = value.get_shape();
    if (std::none_of(o.shapes.begin(), o.shapes.end(), [&](const auto& s) { return s.first == name; }))
      options.shapes.emplace_back(name, type.lens);
    if (is_known(value, which)) options.values.emplace_back(name, value.to_literal());
  }
  return tensorflow::read_any_model(o.model, all);
}
}  // namespace

namespace {
// Of a saved program, only symbols are still open.
void check_sizes(const model_options& o) {
  if (!o.shapes.empty())
    raise(errc::invalid_argument,
          fmt::format("--shape is for models: those of {}, a saved program, are decided", o.model));
  if (o.layout != tensorflow::data_format::nhwc || o.batch != 0 || !o.output_names.empty() || !o.signature.empty() ||
      !o.tag.empty())
    raise(
        errc::invalid_argument,
        fmt::format("--nchw, --batch, --output-names, --signature and --tag are for TensorFlow's models: {} is a saved "
                    "program",
                    o.model));
  small_vector<dimension> open;
  for (const port& p : inspect(o.model).inputs)
    for (const dimension d : p.type.lens) collect_symbols(d, open);
  for (const auto& [name, size] : o.dims)
    if (std::none_of(open.begin(), open.end(), [&](dimension d) { return symbol_name(d) == name; }))
      raise(errc::not_found, fmt::format("--dim {}={}: {} has no such dim that is open", name, size, o.model));
}
}  // namespace

onnx::imported import_model(const model_options& o, const named_arguments& known) {
  if (is_saved_program(o.model)) {
    check_sizes(o);
    onnx::imported out;
    out.graph = load_program(o.model);
    return out;
  }
  try {
    return import_knowing(o, known, known_values::integers);
  } catch (const error& e) {
    if (e.code() != errc::unsupported || known.empty()) throw;
    return import_knowing(o, known, known_values::reals);
  }
}

compile_options compile_options_of(const model_options& o) {
  compile_options out = o.compiling;
  log_passes(out.passes);
  if (out.tune) {
    tuning_options tuning = tuning_options_of(out);
    tuning.progress = [line = std::make_shared<progress_line>()](const tuning_progress& p) {
      line->show(progress_bar(p.done, p.all) + " tuning " + std::string(p.what));
    };
    out.tuning = std::make_shared<tuner>(std::move(tuning));
  }
  return out;
}

compiler compile_for_target(const model_options& o) {
  return [where = std::shared_ptr<const target>(named_target(o.target, o.compiling))](
             program p, const compile_options& options) { return compile(std::move(p), *where, options); };
}

loader load_for_target(const model_options& o) {
  return [where = std::shared_ptr<const target>(named_target(o.target, o.compiling))](
             const std::string& file, const compile_options& options) { return load(file, *where, options); };
}

namespace {
// A table has a use.
void check_table(const model_options& o) {
  if (!o.table.empty() && !quantize::takes_ranges(o.precision))
    raise(errc::invalid_argument, "--table is of ranges: they are for --int8, --fp8 and --fp16");
}

// The precision of a flag, by its table.
void put_in_precision(const model_options& o, program& p, std::vector<std::string>& remarks) {
  if (o.precision == quantize::precision::as_written) return;
  quantize::precision_options how{.to = o.precision};
  if (!o.table.empty()) how.known = quantize::read_table(o.table);
  quantize::quantized_program made = quantize::with_precision(std::move(p), how);
  p = std::move(made.graph);
  for (std::string& r : quantize::remarks_on(o.precision, made.note)) remarks.push_back(std::move(r));
}
}  // namespace

compiled_model load_model(const model_options& o, const named_arguments& given, const compiler& make,
                          const loader& load_it) {
  check_table(o);
  if (load_it && is_saved_program(o.model)) {
    check_sizes(o);
    if (o.precision != quantize::precision::as_written)
      raise(errc::invalid_argument,
            fmt::format("{} is for models: {} is compiled", precision_flag(o.precision), o.model));
    const stopwatch whole;
    executable exe = load_it(o.model, compile_options_of(o));
    log_executable(exe);
    return {std::move(exe), whole.ms(), whole.ms(), false};
  }
  std::optional<busy_line> busy;
  if (!o.compiling.tune) busy.emplace(fmt::format("compiling {}", o.model));
  const auto load = [&](const named_arguments& known) -> compiled_model {
    const stopwatch whole;
    onnx::imported read = import_model(o, known);
    log_program("imported", read.graph);
    const stopwatch rest;
    compile_options options = compile_options_of(o);
    options.remarks = std::move(read.remarks);
    put_in_precision(o, read.graph, options.remarks);
    if (!known.empty())
      options.remarks.push_back("the values of some inputs decide shapes: this is built for the given ones alone");
    executable exe = make(std::move(read.graph), options);
    return {std::move(exe), whole.ms(), rest.ms(), !known.empty()};
  };
  std::optional<compiled_model> out;
  try {
    out = load({});
  } catch (const error& e) {
    if (e.code() != errc::unsupported || given.empty()) throw;
    out = load(given);
    fmt::print(stderr, "kiln: note: the values of its inputs decide shapes, so {} is built for the given ones alone\n",
               o.model);
  }
  log_executable(out->exe);
  return std::move(*out);
}

namespace {

// The options with the inputs' extents fixed.
model_options with_sizes_of(const model_options& o, std::span<const port> inputs, const prepared_inputs& in) {
  model_options out = o;
  out.shapes.clear();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const ints lens = to_ints(in.arguments[k].get_shape().lens);
    out.shapes.emplace_back(inputs[k].name, std::vector<std::int64_t>(lens.begin(), lens.end()));
  }
  return out;
}

}  // namespace

ready_model load_ready(const model_options& o, const named_arguments& given, const compiler& make,
                       const loader& load_it) {
  compiled_model model = load_model(o, given, make, load_it);
  prepared_inputs in = prepare_inputs(model.exe.inputs(), given, o);
  try {
    model.exe.output_shapes(in.shapes());
  } catch (const error& e) {
    if (e.code() != errc::shape_mismatch) throw;
    std::optional<compiled_model> sized;
    try {
      sized = load_model(with_sizes_of(o, model.exe.inputs(), in), given, make);
    } catch (const error&) {
    }
    if (!sized) throw;
    return {std::move(*sized), std::move(in)};
  }
  return {std::move(model), std::move(in)};
}

}  // namespace kiln::driver
