#include "model.hpp"

#include <fmt/format.h>

#include <optional>

#include "debug.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/onnx/import.hpp"
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

std::unique_ptr<target> make_target(const std::string& name) {
  if (name == "reference") return std::make_unique<reference_target>();
  if (name == "eigen") return std::make_unique<eigen_target>();
  raise(errc::invalid_argument, fmt::format("no target '{}'; targets: reference, eigen", name));
}

namespace {
program import_knowing(const model_options& o, const named_arguments& known, known_values which) {
  onnx::import_options options;
  options.dimensions = o.dims;
  for (const auto& [name, lens] : o.shapes) {
    if (lens.size() > max_rank) raise(errc::limit, fmt::format("--shape {}: more than {} dims", name, max_rank));
    options.shapes.emplace_back(name, to_dims(lens));
  }
  for (const auto& [name, value] : known) {
    const shape& type = value.get_shape();
    options.shapes.emplace_back(name, type.lens);
    if (is_known(value, which)) options.values.emplace_back(name, value.to_literal());
  }
  return onnx::read_model(o.model, options).graph;
}
}  // namespace

program import_model(const model_options& o, const named_arguments& known) {
  try {
    return import_knowing(o, known, known_values::integers);
  } catch (const error& e) {
    if (e.code() != errc::unsupported || known.empty()) throw;
    return import_knowing(o, known, known_values::reals);
  }
}

compile_options compile_options_of(const model_options& o) {
  compile_options out;
  out.threads = o.threads;
  log_passes(out.passes);
  return out;
}

compiled_model load_model(const model_options& o, const named_arguments& given) {
  const std::unique_ptr<target> where = make_target(o.target);
  const busy_line busy(fmt::format("compiling {}", o.model));
  const auto load = [&](const named_arguments& known) -> compiled_model {
    const stopwatch whole;
    program p = import_model(o, known);
    log_program("imported", p);
    const stopwatch rest;
    executable exe = compile(std::move(p), *where, compile_options_of(o));
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

model_options with_sizes_of(const model_options& o, std::span<const port> inputs, const prepared_inputs& in) {
  model_options out = o;
  out.shapes.clear();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const ints lens = to_ints(in.arguments[k].get_shape().lens);
    out.shapes.emplace_back(inputs[k].name, std::vector<std::int64_t>(lens.begin(), lens.end()));
  }
  return out;
}

ready_model load_ready(const model_options& o, const named_arguments& given) {
  compiled_model model = load_model(o, given);
  prepared_inputs in = prepare_inputs(model.exe.inputs(), given, o);
  try {
    model.exe.output_shapes(in.shapes());
  } catch (const error& e) {
    if (e.code() != errc::shape_mismatch) throw;
    std::optional<compiled_model> sized;
    try {
      sized = load_model(with_sizes_of(o, model.exe.inputs(), in), given);
    } catch (const error&) {
    }
    if (!sized) throw;
    return {std::move(*sized), std::move(in)};
  }
  return {std::move(model), std::move(in)};
}

}  // namespace kiln::driver
