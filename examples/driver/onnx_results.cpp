#include "onnx_results.hpp"

#include <charconv>

#include "kiln/core/error.hpp"

namespace kiln::driver {

extern const std::string_view onnx_results_text;

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

int number(std::string_view text) {
  int n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

}  // namespace

std::map<std::pair<std::string_view, std::string_view>, onnx_result> onnx_results() {
  std::map<std::pair<std::string_view, std::string_view>, onnx_result> out;
  for (const std::string_view line : split(onnx_results_text, '\n')) {
    std::vector<std::string_view> columns = split(line, '\t');
    columns.resize(7);
    out[{columns[0], columns[1]}] = {number(columns[2]), number(columns[3]), columns[4], columns[5],
                                     split(columns[6], ' ')};
  }
  return out;
}

}  // namespace kiln::driver
