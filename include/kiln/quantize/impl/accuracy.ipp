#include "kiln/quantize/accuracy.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/runtime/thread_pool.hpp"

namespace kiln::quantize {
namespace {

// A watched value of the reference, and what has its name in the quantized program.
struct pair {
  std::size_t at;
  value_id quantized;
  std::optional<tensor_quantization> quantization;
};

std::vector<watched_value> outputs_of(const program& p) {
  std::vector<watched_value> out;
  for (std::size_t k = 0; k < p.main().outputs.size(); ++k)
    out.push_back({p.main().output_names[k].str(), p.main().outputs[k]});
  return out;
}

// Under names that tell their places: an output may be a watched value too.
watched_value numbered(std::size_t at, const std::string& name, value_id v) {
  return {std::to_string(at) + " " + name, v};
}

// Rows of scores: some classes, and no picture.
bool looks_like_scores(const shape& s) {
  if (s.rank() < 1 || s.rank() > 3) return false;
  const dimension classes = s.lens[s.rank() - 1];
  return !classes.is_constant() || classes.value() >= 2;
}

tensor_accuracy row_of(const std::string& name, const pair& p, const error_statistics& e, double noise_before) {
  tensor_accuracy out;
  out.name = name;
  out.seen = e.seen();
  out.quantization = p.quantization;
  out.saturation = e.saturation();
  out.sqnr = e.sqnr(), out.cosine = e.cosine();
  out.added_noise =
      std::isnan(e.noise()) || std::isinf(e.noise()) ? e.noise() : std::max(0.0, e.noise() - noise_before);
  out.top1 = e.top1();
  return out;
}

void compare_values(const std::string& name, const pair& p, bool scores, const argument& expected,
                    const argument& found, error_statistics& to) {
  try {
    const tensor x = tensor_of(expected), y = tensor_of(found);
    to.add(x, y);
    if (p.quantization) to.add_saturation(x, *p.quantization);
    if (scores) to.add_top1(x, y);
  } catch (error& e) {
    throw e.at_instruction(name);
  }
}

std::size_t bytes_of(std::span<const argument> values) {
  std::size_t out = 0;
  for (const argument& v : values) out += static_cast<std::size_t>(v.get_shape().bytes().value());
  return out;
}

}  // namespace

std::vector<accuracy_reference::entry> accuracy_reference::entries_of(const program& p,
                                                                      const std::vector<watched_value>& watched) {
  std::vector<entry> out;
  const auto is_real = [&](const watched_value& w) { return is_float(p.main().shape_of(w.value).type); };
  for (watched_value& w : outputs_of(p))
    if (is_real(w)) out.push_back({w, true, looks_like_scores(p.main().shape_of(w.value))});
  for (const watched_value& w : watched)
    if (!is_unnamed(w.name) && is_real(w)) out.push_back({w});
  return out;
}

accuracy_reference::accuracy_reference(const program& p, const std::vector<watched_value>& watched, const target& t,
                                       compile_options compiling, std::size_t most_kept)
    : target_(&t),
      compiling_(std::move(compiling)),
      main_(p.main()),
      entries_(entries_of(p, watched)),
      run_(
          p,
          [&] {
            std::vector<watched_value> out;
            for (const entry& e : entries_) out.push_back(numbered(out.size(), e.of.name, e.of.value));
            return out;
          }(),
          t, compiling_),
      most_kept_(most_kept) {}

std::span<const argument> accuracy_reference::values_of(std::size_t number, const sample& inputs) {
  if (number < kept_.size()) return kept_[number];
  const std::span<const argument> values = run_.run(inputs);
  const std::size_t bytes = bytes_of(values);
  if (kept_.size() == number && kept_bytes_ + bytes <= most_kept_) {
    std::vector<argument>& copies = kept_.emplace_back();
    for (const argument& v : values) copies.push_back(v.copy());
    kept_bytes_ += bytes;
  }
  return values;
}

// For each compared value, the greatest noise among the nearest compared values that the reference computes it from.
std::vector<double> accuracy_reference::noise_before(const std::vector<std::size_t>& compared,
                                                     const std::vector<error_statistics>& errors) const {
  std::vector<double> reaching(main_.size(), 0), own(main_.size(), -1), out;
  for (std::size_t i = 0; i < compared.size(); ++i) {
    double& at = own[entries_[compared[i]].of.value.instruction];
    at = std::max(at, errors[i].noise());
  }
  for (const std::uint32_t i : main_.order())
    for (const value_id v : main_[i].inputs)
      reaching[i] = std::max(reaching[i], own[v.instruction] >= 0 ? own[v.instruction] : reaching[v.instruction]);
  for (const std::size_t at : compared) out.push_back(reaching[entries_[at].of.value.instruction]);
  return out;
}

accuracy_report accuracy_reference::compare(const program& quantized, const std::vector<watched_value>& in_quantized,
                                            const std::map<std::string, tensor_quantization>& quantizations,
                                            const calibration_data& data, const calibration_progress& progress) {
  std::vector<pair> pairs;
  std::vector<std::size_t> compared;
  std::vector<watched_value> watched;
  const std::vector<watched_value> outputs = outputs_of(quantized);
  for (std::size_t k = 0; k < entries_.size(); ++k) {
    const std::string& name = entries_[k].of.name;
    const auto& among = entries_[k].is_output ? outputs : in_quantized;
    const auto same = std::find_if(among.begin(), among.end(), [&](const watched_value& w) { return w.name == name; });
    if (same == among.end() || !is_float(quantized.main().shape_of(same->value).type)) continue;
    pair made{k, same->value, {}};
    const auto at = quantizations.find(name);
    if (!entries_[k].is_output && at != quantizations.end()) made.quantization = at->second;
    pairs.push_back(std::move(made));
    compared.push_back(k);
    watched.push_back(numbered(k, name, same->value));
  }
  if (pairs.empty() || !entries_[pairs[0].at].is_output)
    raise(errc::invalid_argument, "programs that are compared have an output of floats of the same name: found none");
  watched_program other(quantized, std::move(watched), *target_, compiling_);

  std::vector<error_statistics> errors(pairs.size());
  while (const std::optional<sample> next = data()) {
    const std::span<const argument> expected = values_of(other.samples(), *next), found = other.run(*next);
    other.pool().parallel_for(static_cast<std::int64_t>(pairs.size()), [&](std::int64_t task, unsigned) {
      const auto i = static_cast<std::size_t>(task);
      const entry& e = entries_[pairs[i].at];
      compare_values(e.of.name, pairs[i], e.is_scores, expected[pairs[i].at], found[i], errors[i]);
    });
    if (progress) progress(other.samples());
  }
  if (other.samples() == 0)
    raise(errc::invalid_argument, "a comparison needs data: expected one sample or more, found none");

  accuracy_report out;
  out.samples = other.samples();
  const std::vector<double> before = noise_before(compared, errors);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const entry& e = entries_[pairs[i].at];
    (e.is_output ? out.outputs : out.tensors).push_back(row_of(e.of.name, pairs[i], errors[i], before[i]));
  }
  // NaN is the worst
  std::stable_sort(out.tensors.begin(), out.tensors.end(), [](const tensor_accuracy& a, const tensor_accuracy& b) {
    const bool a_nan = std::isnan(a.added_noise), b_nan = std::isnan(b.added_noise);
    return a_nan || b_nan ? a_nan && !b_nan : a.added_noise > b.added_noise;
  });
  return out;
}

accuracy_report compare_accuracy(const accuracy_question& q, const target& t, const calibration_data& data,
                                 const compile_options& compiling, const calibration_progress& progress) {
  std::vector<watched_value> of_both;
  for (const watched_value& w : q.in_reference)
    if (std::any_of(q.in_quantized.begin(), q.in_quantized.end(), [&](const auto& v) { return v.name == w.name; }))
      of_both.push_back(w);
  return accuracy_reference(q.reference, of_both, t, compiling)
      .compare(q.quantized, q.in_quantized, q.quantizations, data, progress);
}

}  // namespace kiln::quantize
