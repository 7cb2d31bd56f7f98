#include "kiln/quantize/calibration.hpp"

#include "kiln/runtime/thread_pool.hpp"

namespace kiln::quantize {
namespace {

calibration_options checked(calibration_options o) {
  check(o);
  return o;
}

void check_floats(const program& p, const std::vector<watched_value>& watched) {
  if (watched.empty()) raise(errc::invalid_argument, "a calibration watches values: expected one or more, found none");
  const module_graph& m = p.main();
  for (const watched_value& w : watched) {
    if (w.value.instruction >= m.size() || w.value.result >= m[w.value.instruction].results.size()) continue;
    const dtype type = m.shape_of(w.value).type;
    if (!is_float(type)) {
      error e(fault::of(errc::unsupported, "type of a value whose range is sought", "a float type", to_string(type)));
      throw e.at_instruction(w.name);
    }
  }
}

}  // namespace

calibrator::calibrator(program p, std::vector<watched_value> watched, const target& t, calibration_options options,
                       compile_options compiling)
    : options_(checked(std::move(options))),
      program_([&] {
        check_floats(p, watched);
        return watched_program(std::move(p), std::move(watched), t, std::move(compiling));
      }()),
      statistics_(program_.watched().size(), tensor_statistics(statistics_for(options_))) {}

void calibrator::add(const sample& inputs) {
  const std::span<const argument> values = program_.run(inputs);
  program_.pool().parallel_for(static_cast<std::int64_t>(values.size()), [&](std::int64_t task, unsigned) {
    const auto i = static_cast<std::size_t>(task);
    try {
      statistics_[i].add(tensor_of(values[i]));
    } catch (error& e) {
      e.at_instruction(program_.watched()[i].name);
      throw e.at_source("calibration sample " + std::to_string(program_.samples()));
    }
  });
}

void calibrator::end_batch() {
  for (tensor_statistics& s : statistics_) s.end_batch();
}

void calibrator::check_values() const {
  constexpr std::size_t most = 8;  // names in one message
  std::string found;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    const value_counts& c = statistics_[i].counts();
    const std::int64_t infinities = options_.ignore_infinities ? 0 : c.infinities;
    if ((c.nans == 0 && infinities == 0) || ++tensors > most) continue;
    found += found.empty() ? "" : "; ";
    if (c.nans != 0) found += std::to_string(c.nans) + " NaN ";
    if (c.nans != 0 && infinities != 0) found += "and ";
    if (infinities != 0) found += std::to_string(infinities) + " infinite values ";
    found += "in '" + program_.watched()[i].name + "'";
  }
  if (tensors > most) found += "; and in " + std::to_string(tensors - most) + " tensors more";
  if (tensors != 0) raise(errc::invalid_argument, "values that calibrate are finite: found " + found);
}

ranges calibrator::finish() const {
  if (samples() == 0)
    raise(errc::invalid_argument, "a calibration needs data: expected one sample or more, found none");
  check_values();
  ranges out;
  for (std::size_t i = 0; i < statistics_.size(); ++i)
    out.emplace(program_.watched()[i].name, choose_range(statistics_[i], options_));
  return out;
}

ranges calibrate(program p, std::vector<watched_value> watched, const target& t, const calibration_data& data,
                 const calibration_options& options, const compile_options& compiling, std::size_t batch,
                 const calibration_progress& progress) {
  calibrator c(std::move(p), std::move(watched), t, options, compiling);
  while (const std::optional<sample> next = data()) {
    c.add(*next);
    if (batch != 0 && c.samples() % batch == 0) c.end_batch();
    if (progress) progress(c.samples());
  }
  return c.finish();
}

}  // namespace kiln::quantize
