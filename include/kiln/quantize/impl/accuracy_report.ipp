#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "kiln/quantize/accuracy.hpp"

namespace kiln::quantize {
namespace {

using nlohmann::ordered_json;

std::string number(const char* format, double v) {
  char out[64];
  std::snprintf(out, sizeof out, format, v);
  return out;
}

std::string decibels(double v) { return std::isinf(v) && v > 0 ? "exact" : number("%.1f dB", v); }

std::string line_of(const tensor_accuracy& t, std::size_t width) {
  return "  " + t.name + std::string(width - t.name.size(), ' ') + "  " + figures_text(t) + "\n";
}

// JSON has no infinity and no NaN.
ordered_json json_of(double v) {
  return std::isfinite(v) ? ordered_json(v) : ordered_json(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

ordered_json json_of(const std::vector<tensor_accuracy>& rows) {
  ordered_json out = ordered_json::array();
  for (const tensor_accuracy& t : rows) {
    ordered_json row = {{"name", t.name}, {"low", json_of(t.seen.low)}, {"high", json_of(t.seen.high)}};
    if (t.quantization) {
      row["type"] = to_string(t.quantization->as.type);
      row["scale"] = t.quantization->with.scale;
      row["zero_point"] = t.quantization->with.zero_point;
      row["saturation"] = t.saturation;
    }
    row["sqnr"] = json_of(t.sqnr);
    row["cosine"] = json_of(t.cosine);
    row["added_noise"] = json_of(t.added_noise);
    if (t.top1) row["top1"] = *t.top1;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::string figures_text(const tensor_accuracy& t) {
  std::string out = decibels(t.sqnr) + ", cosine " + number("%.6f", t.cosine) + ", adds " +
                    number("%.2e", t.added_noise) + ", range " + number("%.6g", t.seen.low) + " to " +
                    number("%.6g", t.seen.high);
  if (t.quantization) {
    const tensor_quantization& q = *t.quantization;
    out += ", " + std::string(to_string(q.as.type)) + " scale " + number("%.6g", q.with.scale) + " zero point " +
           std::to_string(q.with.zero_point) + ", " + number("%.4f", 100 * t.saturation) + " % saturate";
  }
  if (t.top1) out += ", top-1 " + number("%.2f", 100 * *t.top1) + " %";
  return out;
}

std::string report_text(const accuracy_report& r) {
  std::size_t width = 0;
  for (const auto* rows : {&r.outputs, &r.tensors})
    for (const tensor_accuracy& t : *rows) width = std::max(width, t.name.size());
  std::string out = std::to_string(r.samples) + " samples; signal to quantization noise of outputs\n";
  for (const tensor_accuracy& t : r.outputs) out += line_of(t, width);
  if (r.tensors.empty()) return out;
  out += "and of layers, the one that adds most noise first\n";
  for (const tensor_accuracy& t : r.tensors) out += line_of(t, width);
  return out;
}

std::string report_json(const accuracy_report& r) {
  const ordered_json out = {{"samples", r.samples}, {"outputs", json_of(r.outputs)}, {"tensors", json_of(r.tensors)}};
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace kiln::quantize
