#include "kiln/quantize/accuracy.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/runtime/thread_pool.hpp"

namespace kiln::quantize {
namespace {

// A pair of values: the same numbers in both programs, but for quantization.
struct pair {
  std::string name;
  value_id reference, quantized;
  bool output = false;
  std::optional<tensor_quantization> quantization;
};

std::vector<watched_value> outputs_of(const program& p) {
  std::vector<watched_value> out;
  for (std::size_t k = 0; k < p.main().outputs.size(); ++k)
    out.push_back({p.main().output_names[k].str(), p.main().outputs[k]});
  return out;
}

void add_pairs(std::vector<pair>& to, const accuracy_question& q, bool outputs) {
  const std::vector<watched_value> x = outputs ? outputs_of(q.reference) : q.in_reference;
  const std::vector<watched_value> y = outputs ? outputs_of(q.quantized) : q.in_quantized;
  for (const watched_value& v : x) {
    if (!outputs && is_unnamed(v.name)) continue;
    const auto same = std::find_if(y.begin(), y.end(), [&](const watched_value& w) { return w.name == v.name; });
    if (same == y.end()) continue;
    if (!is_float(q.reference.main().shape_of(v.value).type) ||
        !is_float(q.quantized.main().shape_of(same->value).type))
      continue;
    pair made{v.name, v.value, same->value, outputs, {}};
    if (const auto at = q.quantizations.find(v.name); at != q.quantizations.end()) made.quantization = at->second;
    to.push_back(std::move(made));
  }
}

// The values of one of the two programs, under names that tell a pair's part.
std::vector<watched_value> watch_of(const std::vector<pair>& pairs, value_id pair::*part) {
  std::vector<watched_value> out;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    out.push_back({std::to_string(i) + " " + pairs[i].name, pairs[i].*part});
  return out;
}

// Rows of scores: some classes, and no picture.
bool looks_like_scores(const shape& s) {
  if (s.rank() < 1 || s.rank() > 3) return false;
  const dimension classes = s.lens[s.rank() - 1];
  return !classes.is_constant() || classes.value() >= 2;
}

// For each pair, the greatest noise among the nearest watched values that the reference computes it from.
std::vector<double> noise_before(const module_graph& m, const std::vector<pair>& pairs,
                                 const std::vector<error_statistics>& errors) {
  std::vector<double> reaching(m.size(), 0), own(m.size(), -1), out(pairs.size(), 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    double& at = own[pairs[i].reference.instruction];
    at = std::max(at, errors[i].noise());
  }
  for (const std::uint32_t i : m.order())
    for (const value_id v : m[i].inputs)
      reaching[i] = std::max(reaching[i], own[v.instruction] >= 0 ? own[v.instruction] : reaching[v.instruction]);
  for (std::size_t i = 0; i < pairs.size(); ++i) out[i] = reaching[pairs[i].reference.instruction];
  return out;
}

tensor_accuracy row_of(const pair& p, const error_statistics& e, double noise_before) {
  tensor_accuracy out;
  out.name = p.name;
  out.seen = e.seen();
  out.quantization = p.quantization;
  out.saturation = e.saturation();
  out.sqnr = e.sqnr(), out.cosine = e.cosine();
  out.added_noise =
      std::isnan(e.noise()) || std::isinf(e.noise()) ? e.noise() : std::max(0.0, e.noise() - noise_before);
  out.top1 = e.top1();
  return out;
}

void compare_values(const pair& p, bool scores, const argument& expected, const argument& found, error_statistics& to) {
  try {
    const tensor x = tensor_of(expected), y = tensor_of(found);
    to.add(x, y);
    if (p.quantization) to.add_saturation(x, *p.quantization);
    if (scores) to.add_top1(x, y);
  } catch (error& e) {
    throw e.at_instruction(p.name);
  }
}

}  // namespace

accuracy_report compare_accuracy(const accuracy_question& q, const target& t, const calibration_data& data,
                                 const compile_options& compiling, const calibration_progress& progress) {
  std::vector<pair> pairs;
  add_pairs(pairs, q, true);
  if (pairs.empty())
    raise(errc::invalid_argument, "programs that are compared have an output of floats of the same name: found none");
  add_pairs(pairs, q, false);
  watched_program reference(q.reference, watch_of(pairs, &pair::reference), t, compiling);
  watched_program quantized(q.quantized, watch_of(pairs, &pair::quantized), t, compiling);
  std::vector<bool> scores;
  for (const pair& p : pairs) scores.push_back(p.output && looks_like_scores(q.reference.main().shape_of(p.reference)));

  std::vector<error_statistics> errors(pairs.size());
  while (const std::optional<sample> next = data()) {
    const std::span<const argument> expected = reference.run(*next), found = quantized.run(*next);
    reference.pool().parallel_for(static_cast<std::int64_t>(pairs.size()), [&](std::int64_t task, unsigned) {
      const auto i = static_cast<std::size_t>(task);
      compare_values(pairs[i], scores[i], expected[i], found[i], errors[i]);
    });
    if (progress) progress(reference.samples());
  }
  if (reference.samples() == 0)
    raise(errc::invalid_argument, "a comparison needs data: expected one sample or more, found none");

  accuracy_report out;
  out.samples = reference.samples();
  const std::vector<double> before = noise_before(q.reference.main(), pairs, errors);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    (pairs[i].output ? out.outputs : out.tensors).push_back(row_of(pairs[i], errors[i], before[i]));
  // NaN is the worst
  std::stable_sort(out.tensors.begin(), out.tensors.end(), [](const tensor_accuracy& a, const tensor_accuracy& b) {
    const bool a_nan = std::isnan(a.added_noise), b_nan = std::isnan(b.added_noise);
    return a_nan || b_nan ? a_nan && !b_nan : a.added_noise > b.added_noise;
  });
  return out;
}

}  // namespace kiln::quantize
