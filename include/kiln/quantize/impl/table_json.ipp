#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "kiln/quantize/impl/table_forms.hpp"

// JSON tables. Of ONNX Runtime's, numbers are {"data": number or list, "dtype": ..., "CLS": "numpy.array"}.
namespace kiln::quantize::detail {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json array_of(const ordered_json& data) {
  return {{"data", data}, {"dtype", "float32"}, {"CLS", "numpy.array"}};
}

ordered_json tensor_data(const tensor_range& r) {
  ordered_json out, low = r.whole.low, high = r.whole.high;
  if (!r.channels.empty()) {
    low = high = ordered_json::array();
    for (const range& c : r.channels) low.push_back(c.low), high.push_back(c.high);
  }
  out["lowest"] = array_of(low);
  out["highest"] = array_of(high);
  if (r.distribution) {
    out["avg"] = array_of(r.distribution->mean);
    out["std"] = array_of(r.distribution->deviation);
  }
  if (!r.channels.empty()) out["axis"] = r.axis;
  out["CLS"] = "TensorData";
  return out;
}

// The numbers of one value, wherever they stand.
std::vector<double> numbers_of(const json& value) {
  const json& data = value.is_object() && value.contains("data") ? value["data"] : value;
  std::vector<double> out;
  if (data.is_number()) return {data.get<double>()};
  if (!data.is_array()) return {};
  for (const json& v : data) {
    if (!v.is_number()) return {};
    out.push_back(v.get<double>());
  }
  return out;
}

// What a value is; its text may be long, and deep.
std::string kind_of(const json& value) {
  if (value.is_number()) return decimal(value.get<double>());
  return std::string(value.is_array() || value.is_object() ? "an " : "a ").append(value.type_name());
}

bool is_tensors_data(const json& root) {
  return root.is_object() && root.contains("CLS") && root["CLS"] == "TensorsData";
}

class reader {
 public:
  explicit reader(const std::string& place) : place_(place) {}

  ranges tensors(const json& root) const {
    const json* of = &root;
    if (is_tensors_data(root)) {
      if (!root.contains("data") || !root["data"].is_object())
        bad_table(place_, 0, "TensorsData with an object \"data\"", "none");
      of = &root["data"];
    }
    ranges out;
    for (const auto& [name, value] : of->items()) add_range(out, name, tensor(name, value), place_, 0);
    return out;
  }

 private:
  tensor_range tensor(const std::string& name, const json& value) const {
    tensor_range out;
    std::vector<double> low, high;
    if (value.is_number()) {
      high = {std::fabs(value.get<double>())};
      low = {-high[0]};
    } else if (value.is_array() && value.size() == 2) {
      low = numbers_of(value[0]), high = numbers_of(value[1]);
    } else if (value.is_object() && value.contains("lowest") && value.contains("highest")) {
      low = numbers_of(value["lowest"]), high = numbers_of(value["highest"]);
      if (value.contains("avg") && value.contains("std")) out.distribution = distribution(name, value);
    }
    if (low.empty() || low.size() != high.size())
      bad_table(place_, 0, "a number, [lowest, highest], or an object with both, of '" + name + "'", kind_of(value));
    for (std::size_t i = 0; i < low.size(); ++i) {
      const range channel{low[i], high[i]};
      check_range(name, channel, place_, 0);
      out.whole = i == 0 ? channel : out.whole.joined(channel);
      if (low.size() > 1 || is_list(value)) out.channels.push_back(channel);
    }
    if (value.is_object() && value.contains("axis")) out.axis = axis(name, value["axis"]);
    return out;
  }

  std::int64_t axis(const std::string& name, const json& value) const {
    constexpr std::int64_t most = 64;  // no tensor has as many dims
    if (!value.is_number_integer()) bad_table(place_, 0, "an integer axis of '" + name + "'", kind_of(value));
    const auto out = value.get<std::int64_t>();
    if (out < -most || out > most) bad_table(place_, 0, "an axis of '" + name + "' within a rank", std::to_string(out));
    return out;
  }

  moments distribution(const std::string& name, const json& value) const {
    const std::vector<double> mean = numbers_of(value["avg"]), deviation = numbers_of(value["std"]);
    if (mean.size() != 1 || deviation.size() != 1 || deviation[0] < 0)
      bad_table(place_, 0, "numbers avg and std of '" + name + "', std not below 0",
                kind_of(value["avg"]) + " and " + kind_of(value["std"]));
    return {mean[0], deviation[0]};
  }

  // One channel is a list of one.
  static bool is_list(const json& value) {
    return value.is_object() && value["lowest"].is_object() && value["lowest"]["data"].is_array();
  }

  const std::string& place_;
};

constexpr int most_depth = 8;  // ONNX Runtime's tables have 5

std::size_t line_of(std::string_view bytes, std::size_t at) {
  return 1 + static_cast<std::size_t>(std::count(
                 bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at, bytes.size())), '\n'));
}

}  // namespace

std::string json_table(const ranges& r, bool plain, calibration_method by) {
  ordered_json tensors = ordered_json::object();
  for (const auto& [name, of] : r) tensors[name] = plain ? ordered_json(of.whole.magnitude()) : tensor_data(of);
  if (plain) return tensors.dump(1) + "\n";
  constexpr std::string_view names[] = {"MinMax", "Entropy", "Percentile", "Distribution"};
  const std::string name = std::string("CalibrationMethod.").append(names[static_cast<unsigned>(by)]);
  const ordered_json method = {{"CLS", "CalibrationMethod"}, {"value", name}};
  return ordered_json{{"CLS", "TensorsData"}, {"data", tensors}, {"calibration_method", method}}.dump() + "\n";
}

bool is_tensors_data(std::string_view bytes) { return is_tensors_data(json::parse(bytes, nullptr, false)); }

ranges parse_json(std::string_view bytes, const std::string& place) {
  json root;
  std::string again;                        // a name that stands there twice
  std::vector<std::set<std::string>> open;  // the keys of objects that have not ended
  int depth = 0;
  const auto deeper = [&] {
    // a reader's work is recursive
    if (++depth > most_depth)
      bad_table(place, 0, "lists and objects within each other, " + std::to_string(most_depth) + " deep at most",
                "more");
  };
  const json::parser_callback_t watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) deeper();
    if (event == json::parse_event_t::object_end || event == json::parse_event_t::array_end) --depth;
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!open.back().insert(key).second) again = key;
    }
    return true;
  };
  try {
    root = json::parse(bytes, watch);
  } catch (const json::parse_error& e) {
    const std::size_t line = line_of(bytes, e.byte == 0 ? 0 : e.byte - 1);
    if (e.byte > bytes.size()) bad_table(place, line, "the rest of a JSON object", "the end of the file");
    bad_table(place, line, "a JSON object", "no JSON at byte " + std::to_string(e.byte));
  } catch (const json::exception& e) {
    bad_table(place, 0, "a JSON object of finite numbers", e.what());
  }
  if (!again.empty()) bad_table(place, 0, "each tensor once", "'" + again + "' again");
  return reader(place).tensors(root);
}

}  // namespace kiln::quantize::detail
