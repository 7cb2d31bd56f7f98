#include <nlohmann/json.hpp>

#include "kiln/interface/onnxruntime/provider_options.hpp"

namespace kiln::onnxruntime {

namespace {

// What the original's own answer has for flags.
std::string plain(const provider_option& o, std::string value) {
  return o.kind == option_kind::flag ? value == "true" ? "1" : "0" : value;
}

}  // namespace

std::string provider_option_table_json() {
  auto out = nlohmann::json::array();
  for (const provider_option& o : provider_option_table())
    out.push_back({{"name", o.name},
                   {"also", o.also},
                   {"environment", o.environment},
                   {"kind", to_string(o.kind)},
                   {"default", plain(o, o.default_text())},
                   {"expected", o.expected()},
                   {"help", o.help}});
  return out.dump();
}

std::string provider_options_json(const provider_options& o) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const provider_option& option : provider_option_table())
    out[std::string(option.name)] = plain(option, option.get(o));
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace kiln::onnxruntime
