#include <algorithm>
#include <cmath>

#include "kiln/graph/picture.hpp"
#include "kiln/quantize/accuracy.hpp"

namespace kiln::quantize {
namespace {

// From red to blue, which those who do not tell red from green tell apart; text stays readable on all.
struct band {
  double below;  // decibels
  const char *color, *meaning;
};
constexpr band bands[] = {
    {10, "#f28f7c", "below 10 dB"}, {20, "#fbbf86", "10 to 20"},          {30, "#fdeba2", "20 to 30"},
    {40, "#cfe6ee", "30 to 40"},    {INFINITY, "#9cc4e4", "40 and more"},
};
constexpr const char *exact = "#ffffff", *unknown = "#d5d5d5";

const char* color_of(double sqnr) {
  if (std::isnan(sqnr)) return bands[0].color;
  for (const band& b : bands)
    if (sqnr < b.below) return b.color;
  return exact;
}

picture_note note_of(const tensor_accuracy& t) { return {color_of(t.sqnr), t.name + ": " + figures_text(t)}; }

bool is_worse(const tensor_accuracy& a, const tensor_accuracy& b) {
  return std::isnan(a.sqnr) || (!std::isnan(b.sqnr) && a.sqnr < b.sqnr);
}

const tensor_accuracy* find(const std::vector<tensor_accuracy>& in, const std::string& name) {
  const auto at = std::find_if(in.begin(), in.end(), [&](const tensor_accuracy& t) { return t.name == name; });
  return at == in.end() ? nullptr : &*at;
}

}  // namespace

std::string report_svg(const program& reference, const accuracy_report& r) {
  picture_notes notes;
  notes.other_color = unknown;
  notes.caption = "Signal to quantization noise";
  for (const band& b : bands) notes.legend.push_back({b.color, b.meaning});
  notes.legend.push_back({exact, "exact"});
  notes.legend.push_back({unknown, "not compared"});
  // of several results the worst one
  std::map<std::uint32_t, const tensor_accuracy*> worst;
  for (const watched_value& w : float_values(reference))
    if (const tensor_accuracy* const t = find(r.tensors, w.name)) {
      const tensor_accuracy*& shown = worst[w.value.instruction];
      if (!shown || is_worse(*t, *shown)) shown = t;
    }
  for (const auto& [instruction, t] : worst) notes.instructions[instruction] = note_of(*t);
  const module_graph& m = reference.main();
  for (std::size_t k = 0; k < m.outputs.size(); ++k)
    if (const tensor_accuracy* const t = find(r.outputs, m.output_names[k].str())) notes.outputs[k] = note_of(*t);
  return to_svg(reference, notes);
}

}  // namespace kiln::quantize
