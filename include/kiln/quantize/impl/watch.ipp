#include "kiln/quantize/watch.hpp"

#include <set>

#include "kiln/runtime/named_inputs.hpp"

namespace kiln::quantize {
namespace {

// By instruction: whether it depends on an input.
std::vector<bool> variable_of(const module_graph& m, const small_vector<std::uint32_t>& order) {
  std::vector<bool> out(m.size(), false);
  for (const std::uint32_t i : order) {
    out[i] = m[i].kind == instruction_kind::parameter && !m[i].is_weight;
    for (const value_id v : m[i].inputs) out[i] = out[i] || out[v.instruction];
  }
  return out;
}

// Where each name leads, and how each value is named.
struct value_names {
  std::map<std::string, value_id, std::less<>> values;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> names;

  // In the order in which names win: outputs last, so that they hide instructions.
  explicit value_names(const module_graph& m) {
    for (std::uint32_t i = 0; i < m.size(); ++i)
      if (m[i].kind == instruction_kind::op && !m[i].name.view().empty()) values[m[i].name.str()] = {i, 0};
    for (std::size_t k = 0; k < m.outputs.size(); ++k) values[m.output_names[k].str()] = m.outputs[k];
    for (const value_id v : m.parameters()) values[m.producer(v).name.str()] = v;
    for (const auto& [name, v] : values) names[{v.instruction, v.result}] = name;
    number_others(m);
  }

 private:
  // The values of a source node that became several instructions, but for its last one: NAME#0, NAME#1 and so on.
  void number_others(const module_graph& m) {
    const auto order = m.order();
    const std::vector<bool> variable = variable_of(m, order);
    std::map<std::string, std::size_t, std::less<>> next;
    for (const std::uint32_t i : order) {
      if (m[i].kind != instruction_kind::op || !variable[i] || m[i].name.view().empty()) continue;
      for (std::uint32_t k = 0; k < m[i].results.size(); ++k) {
        if (!is_float(m[i].results[k].type) || names.contains({i, k})) continue;
        std::size_t& number = next[m[i].name.str()];
        std::string name;
        do name = m[i].name.str() + "#" + std::to_string(number++);
        while (!values.emplace(name, value_id{i, k}).second);
        names[{i, k}] = std::move(name);
      }
    }
  }
};

program with_outputs(program p, std::span<const watched_value> watched) {
  module_graph& m = p.main();
  m.outputs.clear();
  m.output_names.clear();
  std::set<std::string> seen;
  for (const watched_value& w : watched) {
    if (w.value.instruction >= m.size() || w.value.result >= m[w.value.instruction].results.size())
      raise(errc::invalid_argument, "a watched value is one of the program's: '" + w.name + "' is none");
    if (!seen.insert(w.name).second)
      raise(errc::invalid_argument, "watched values have names of their own: found '" + w.name + "' again");
    m.outputs.push_back(w.value);
    m.output_names.push_back(text(w.name));
  }
  m.compact();
  return p;
}

}  // namespace

std::vector<watched_value> values_named(const program& p, std::span<const std::string> names) {
  const value_names known(p.main());
  std::vector<watched_value> out;
  for (const std::string& name : names) {
    const auto at = known.values.find(name);
    if (at == known.values.end())
      raise(errc::not_found, "a value to watch is an input, an output or a named instruction: found '" + name + "'");
    out.push_back({name, at->second});
  }
  return out;
}

std::vector<watched_value> float_values(const program& p) {
  const module_graph& m = p.main();
  const value_names known(m);
  const auto order = m.order();
  const std::vector<bool> variable = variable_of(m, order);
  std::vector<watched_value> out;
  for (const std::uint32_t i : order) {
    if (!variable[i]) continue;
    for (std::uint32_t k = 0; k < m[i].results.size(); ++k) {
      if (!is_float(m[i].results[k].type)) continue;
      const auto at = known.names.find({i, k});
      std::string name = at != known.names.end() ? at->second : std::string("%").append(std::to_string(i));
      if (at == known.names.end() && k != 0) name.append(".").append(std::to_string(k));
      out.push_back({std::move(name), {i, k}});
    }
  }
  return out;
}

bool is_unnamed(std::string_view name) {
  return name.size() > 1 && name[0] == '%' && name.find_first_not_of("0123456789.", 1) == name.npos;
}

watched_program::watched_program(program p, std::vector<watched_value> watched, const target& t,
                                 compile_options options)
    : watched_(std::move(watched)),
      run_([&] {
        options.passes.fuse = false;
        return compile(with_outputs(std::move(p), watched_), t, options);
      }()),
      values_(watched_.size()) {}

std::span<const argument> watched_program::run(const sample& inputs) {
  ++samples_;
  try {
    std::vector<named_input> named;
    for (const auto& [name, value] : inputs) named.push_back({name, value});
    const std::vector<argument> ordered = ordered_inputs(run_, named);
    make_room(ordered);
    run_.run(memory_, ordered, values_);
  } catch (error& e) {
    throw e.at_source("calibration sample " + std::to_string(samples_));
  }
  return values_;
}

// Values of the last sample's extents are written over; what only a run can size, and strings, are made by it.
void watched_program::make_room(std::span<const argument> inputs) {
  std::vector<shape> shapes;
  for (const argument& a : inputs) shapes.push_back(a.get_shape());
  if (shapes != shapes_) {
    values_.assign(watched_.size(), argument());  // freed before others are made
    shapes_.clear();
    values_ = run_.make_outputs(shapes);
    sized_.clear();
    for (const argument& v : values_) sized_.push_back(static_cast<bool>(v));
    shapes_ = std::move(shapes);
  }
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (!sized_[i]) values_[i] = argument();
}

}  // namespace kiln::quantize
