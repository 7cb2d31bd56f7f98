// render_cases CASES.json: renders each {"template": text, "variables": object} of a JSON list and prints a list of
// {"text": ...} or {"error": ...}, for comparison with other engines.
#include <fstream>
#include <iostream>
#include <kiln/core/error.hpp>
#include <kiln/text/jinja/template.hpp>
#include <nlohmann/json.hpp>

int main(int count, char** words) {
  if (count != 2) return 2;
  std::ifstream in(words[1]);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const auto& c : nlohmann::ordered_json::parse(in)) {
    try {
      const kiln::language::jinja::compiled_template t(c["template"].get_ref<const std::string&>());
      results.push_back({{"text", t.render(c["variables"].dump())}});
    } catch (const kiln::error& e) {
      results.push_back({{"error", e.what()}});
    }
  }
  std::cout << results.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << "\n";
}
