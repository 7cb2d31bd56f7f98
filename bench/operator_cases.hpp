#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "versus.hpp"

/// The lists that bench/operators/generate.py writes. A line has fields between tabs: the case's name, the model's file
/// (from the list's folder), the greatest difference that is allowed, relative to the greatest value, or "=" and the
/// difference itself (negative: values are random), and for each input NAME|EXTENTS|LOW:HIGH, or NAME|EXTENTS|=VALUES
/// for values that repeat.
namespace kiln::bench {

struct input_row {
  std::string name;
  dims lens;
  double low = 0, high = 0;
  std::vector<double> values;
};
struct case_row {
  std::string name, file;
  double tolerance = 0;
  bool relative = true;
  std::vector<input_row> inputs;
};

inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

/// The list that a program is given among its options. `take(word, next)` takes an option and what follows it, or
/// returns false. Errors: std::runtime_error for another option, a missing value, or no list.
template <class Take> std::string read_options(int argc, char** argv, Take&& take) {
  std::string list;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&]() -> std::string {
      if (++i == argc) throw std::runtime_error(word + " takes a value");
      return argv[i];
    };
    if (take(word, next)) continue;
    if (word.starts_with("--") || !list.empty()) throw std::runtime_error("unknown option " + word);
    list = word;
  }
  if (list.empty()) throw std::runtime_error("no list of cases given");
  return list;
}

/// Which cases of a list, and with how many threads: the options --only TEXT, --part K/N (case K of every N, from 0)
/// and --threads.
struct case_selection {
  std::string list, only;
  std::size_t part = 0, parts = 1;
  unsigned threads = 2;

  /// Whether the option is one of these; see `read_options`. Errors: std::runtime_error for a part of another form.
  template <class Next> bool take(const std::string& word, Next&& next) {
    if (word == "--only")
      only = next();
    else if (word == "--threads")
      threads = static_cast<unsigned>(std::stoul(next()));
    else if (word == "--part") {
      const auto numbers = split(next(), '/');
      if (numbers.size() != 2) throw std::runtime_error("--part takes K/N");
      part = std::stoul(numbers[0]), parts = std::stoul(numbers[1]);
      if (part >= parts) throw std::runtime_error("--part K/N takes K from 0 to N - 1");
    } else
      return false;
    return true;
  }
};

/// The cases whose names hold `only`.
inline std::vector<case_row> read_cases(const std::string& list, const std::string& only) {
  std::ifstream in(list);
  if (!in) throw std::runtime_error("can't read " + list);
  std::vector<case_row> rows;
  int number = 0;
  for (std::string line; std::getline(in, line); ++number) {
    const auto fields = split(line, '\t');
    if (fields.size() < 3) throw std::runtime_error(fmt::format("{}:{}: fewer than 3 fields", list, number + 1));
    if (fields[0].find(only) == std::string::npos) continue;
    const bool relative = !fields[2].starts_with('=');
    case_row row{fields[0], fields[1], std::stod(fields[2].substr(relative ? 0 : 1)), relative, {}};
    for (std::size_t i = 3; i < fields.size(); ++i) {
      const auto parts = split(fields[i], '|');
      if (parts.size() != 3) throw std::runtime_error(fmt::format("{}:{}: {}", list, number + 1, fields[i]));
      input_row input{parts[0], {}, 0, 0, {}};
      for (const std::string& n : split(parts[1], ',')) input.lens.push_back(std::stoll(n));
      if (parts[2][0] == '=') {
        for (const std::string& v : split(parts[2].substr(1), ',')) input.values.push_back(std::stod(v));
      } else {
        const auto range = split(parts[2], ':');
        input.low = std::stod(range.at(0)), input.high = std::stod(range.at(1));
      }
      row.inputs.push_back(std::move(input));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The selected cases.
inline std::vector<case_row> read_cases(const case_selection& s) {
  std::vector<case_row> rows, all = read_cases(s.list, s.only);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % s.parts == s.part) rows.push_back(std::move(all[i]));
  return rows;
}

/// A model compiled for as many threads as are selected.
inline executable load(const case_selection& s, const std::filesystem::path& model) {
  compile_options options;
  options.threads = s.threads;
  return compile(onnx::read_model(model.string()).graph, eigen_target(), options);
}

inline argument values_of(const input_row& row, dtype type, unsigned seed) {
  const shape s(type, row.lens);
  if (row.values.empty()) return random_values(s, row.low, row.high, seed);
  argument a(s);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    encode(type, &row.values[static_cast<std::size_t>(i) % row.values.size()],
           a.data() + i * static_cast<std::int64_t>(size_of(type)), 1);
  return a;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("can't read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Seeded values of a case's inputs, by the model's names.
inline std::map<std::string, argument> inputs_of(const case_row& row, std::span<const std::byte> model) {
  std::map<std::string, argument> named;
  unsigned seed = 0;
  const auto declared = onnx::model_inputs(model);
  for (const input_row& input : row.inputs) {
    const auto at = std::find_if(declared.begin(), declared.end(), [&](const auto& v) { return v.name == input.name; });
    if (at == declared.end()) throw std::runtime_error("the model has no input " + input.name);
    named[input.name] = values_of(input, onnx::to_dtype(at->type).value(), ++seed);
  }
  return named;
}

/// One line without tabs, of at most so many characters.
inline std::string in_short(std::string text, std::size_t most = 200) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text.substr(0, most);
}

}  // namespace kiln::bench
