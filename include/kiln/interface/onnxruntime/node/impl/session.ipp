#include "kiln/interface/onnxruntime/node/impl/session.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "kiln/interface/onnxruntime/shim/functions.hpp"

namespace kiln::node {

namespace {

/// Names of settings that begin with this are entries of the session or the run.
constexpr std::string_view entry = "extra.";
constexpr std::string_view extent = "freeDimensionOverrides.";

[[noreturn]] void refuse(std::string_view name, std::string_view expected, std::string_view found) {
  throw std::invalid_argument(std::string(name) + " must be " + std::string(expected) + ", found " +
                              std::string(found));
}

std::int64_t number_of(std::string_view name, std::string_view text) {
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc{} || end != text.data() + text.size()) refuse(name, "a whole number", text);
  return out;
}
int small_of(std::string_view name, std::string_view text) {
  const std::int64_t out = number_of(name, text);
  if (out < 0 || out > 1000000) refuse(name, "from 0 to 1000000", text);
  return static_cast<int>(out);
}
bool flag_of(std::string_view name, std::string_view text) {
  if (text != "true" && text != "false") refuse(name, "true or false", text);
  return text == "true";
}
template <class Choice>
Choice choice_of(std::string_view name, std::string_view text, const std::map<std::string_view, Choice>& among) {
  if (const auto found = among.find(text); found != among.end()) return found->second;
  std::string all;
  for (const auto& [choice, value] : among) all += (all.empty() ? "" : ", ") + std::string(choice);
  refuse(name, "one of " + all, text);
}

void apply(Ort::SessionOptions& to, const std::string& name, const std::string& value) {
  using setter = std::function<void(Ort::SessionOptions&, const std::string&, const std::string&)>;
  static const std::map<std::string_view, GraphOptimizationLevel> levels{{"disabled", ORT_DISABLE_ALL},
                                                                         {"basic", ORT_ENABLE_BASIC},
                                                                         {"extended", ORT_ENABLE_EXTENDED},
                                                                         {"layout", ORT_ENABLE_LAYOUT},
                                                                         {"all", ORT_ENABLE_ALL}};
  static const std::map<std::string_view, ExecutionMode> modes{{"sequential", ORT_SEQUENTIAL},
                                                               {"parallel", ORT_PARALLEL}};
  static const std::map<std::string_view, setter> setters{
      {"intraOpNumThreads", [](auto& o, auto& n, auto& v) { o.SetIntraOpNumThreads(small_of(n, v)); }},
      {"interOpNumThreads", [](auto& o, auto& n, auto& v) { o.SetInterOpNumThreads(small_of(n, v)); }},
      {"graphOptimizationLevel",
       [](auto& o, auto& n, auto& v) { o.SetGraphOptimizationLevel(choice_of(n, v, levels)); }},
      {"executionMode", [](auto& o, auto& n, auto& v) { o.SetExecutionMode(choice_of(n, v, modes)); }},
      {"enableCpuMemArena",
       [](auto& o, auto& n, auto& v) { flag_of(n, v) ? o.EnableCpuMemArena() : o.DisableCpuMemArena(); }},
      {"enableMemPattern",
       [](auto& o, auto& n, auto& v) { flag_of(n, v) ? o.EnableMemPattern() : o.DisableMemPattern(); }},
      {"optimizedModelFilePath", [](auto& o, auto&, auto& v) { o.SetOptimizedModelFilePath(v.c_str()); }},
      {"profileFilePrefix", [](auto& o, auto&, auto& v) { o.EnableProfiling(v.c_str()); }},
      {"logId", [](auto& o, auto&, auto& v) { o.SetLogId(v.c_str()); }},
      {"logSeverityLevel", [](auto& o, auto& n, auto& v) { o.SetLogSeverityLevel(small_of(n, v)); }},
      {"logVerbosityLevel", [](auto& o, auto& n, auto& v) { o.SetLogVerbosityLevel(small_of(n, v)); }},
  };
  if (name.starts_with(entry)) {
    to.AddConfigEntry(name.c_str() + entry.size(), value.c_str());
  } else if (name.starts_with(extent)) {
    to.AddFreeDimensionOverrideByName(name.c_str() + extent.size(), number_of(name, value));
  } else {
    const auto found = setters.find(name);
    if (found == setters.end()) throw std::invalid_argument("kiln's backend has no session option " + name);
    found->second(to, name, value);
  }
}

}  // namespace

Ort::Env& environment() {
  static Ort::Env& only = [&]() -> Ort::Env& {
    Ort::InitApi(static_cast<const OrtApi*>(onnxruntime::functions_of_shim(ORT_API_VERSION)));
    return *new Ort::Env(ORT_LOGGING_LEVEL_WARNING, "kiln");
  }();
  return only;
}

Ort::Session make_session(const session_request& from) {
  Ort::Env& env = environment();
  Ort::SessionOptions options;
  for (const auto& [name, value] : from.settings) apply(options, name, value);
  options.AppendExecutionProvider("kiln", {from.provider.begin(), from.provider.end()});
  return from.path.empty() ? Ort::Session(env, from.bytes.data(), from.bytes.size(), options)
                           : Ort::Session(env, from.path.c_str(), options);
}

void apply(Ort::RunOptions& to, const texts_by_name& settings) {
  for (const auto& [name, value] : settings)
    if (name == "logSeverityLevel")
      to.SetRunLogSeverityLevel(small_of(name, value));
    else if (name == "logVerbosityLevel")
      to.SetRunLogVerbosityLevel(small_of(name, value));
    else if (name == "tag")
      to.SetRunTag(value.c_str());
    else if (name == "terminate")
      flag_of(name, value) ? to.SetTerminate() : to.UnsetTerminate();
    else if (name.starts_with(entry))
      to.AddConfigEntry(name.c_str() + entry.size(), value.c_str());
    else
      throw std::invalid_argument("kiln's backend has no run option " + name);
}

}  // namespace kiln::node
