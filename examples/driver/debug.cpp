#include "debug.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "kiln/runtime/report.hpp"
#include "kiln/runtime/run_options.hpp"
#include "report.hpp"
#include "source.hpp"

namespace kiln::driver {

namespace {

// A line without its value numbers, which every pass shifts.
std::string unnumbered(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    out += line[i];
    if (line[i] == '%')
      while (i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9') ++i;
  }
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Prints the lines of `a` that `b` has not as often.
void print_missing(char mark, std::string_view a, std::string_view b) {
  std::map<std::string, int> counts;
  for (std::string_view line : lines_of(b)) ++counts[unnumbered(line)];
  for (std::string_view line : lines_of(a))
    if (--counts[unnumbered(line)] < 0) fmt::print(stderr, "{}{}\n", mark, line);
}

void log_pass(void* context, const pass_note& note, const program& after) {
  std::string& before = *static_cast<std::string*>(context);
  if (!note.changed()) return;
  std::string now = graph_text(after);
  fmt::print(stderr, "kiln: pass {}:", note.pass);
  for (const auto& e : note.counts.entries) fmt::print(stderr, " {} {}x", e.name, e.count);
  fmt::print(stderr, "\n");
  if (!before.empty()) {
    print_missing('-', before, now);
    print_missing('+', now, before);
  }
  before = std::move(now);
}

std::string& last_graph() {
  static std::string text;
  return text;
}

}  // namespace

int debug_level() {
  static const int level = [] {
    const char* text = std::getenv("KILN_DEBUG");
    return text ? std::atoi(text) : 0;
  }();
  return level;
}

void log_program(std::string_view when, const program& p) {
  if (debug_level() < 1) return;
  last_graph() = graph_text(p);
  fmt::print(stderr, "kiln: {} program\n{}", when, last_graph());
}

void log_passes(pass_options& options) {
  if (debug_level() < 2) return;
  options.observer = {&log_pass, &last_graph()};
}

void log_executable(const executable& exe) {
  const int level = debug_level();
  if (level >= 1) fmt::print(stderr, "kiln: optimized program\n{}", graph_text(exe.optimized()));
  if (level >= 3) fmt::print(stderr, "kiln: plan\n{}", plan_text(exe.report()));
  if (level >= 4) {
    fmt::print(stderr, "kiln: source\n");
    const std::vector<step_info>& steps = exe.report().steps;
    for (std::size_t i = 0; i < steps.size(); ++i)
      fmt::print(stderr, "{:4} {} from {}\n{}", i, steps[i].kernel, steps[i].instruction, step_source(exe, steps[i]));
  }
  if (level >= 5) fmt::print(stderr, "kiln: report\n{}", report_text(exe.report()));
}

void log_steps(const executable& exe, run_options& options) {
  if (debug_level() < 5) return;
  options.profile = [&exe](std::size_t step, double seconds) {
    const step_info& s = exe.report().steps.at(step);
    fmt::print(stderr, "kiln: {:10.4f} ms {} {}\n", seconds * 1e3, s.kernel, s.instruction);
  };
}

}  // namespace kiln::driver
