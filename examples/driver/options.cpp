#include "options.hpp"

#include <fmt/format.h>

#include "compile_flags.hpp"
#include "json.hpp"
#include "kiln/quantize/options.hpp"
#include "kiln/runtime/options.hpp"

namespace kiln::driver {

namespace {

template <class Row> json listed(std::span<const Row> table) {
  json out = json::array();
  for (const auto& row : table) {
    json entry = {{"name", row.name},
                  {"field", row.field.view()},
                  {"kind", to_string(row.kind)},
                  {"default", row.default_text()}};
    if (row.kind == option_kind::count) entry["most"] = row.most;
    if (row.kind == option_kind::choice) entry["choices"] = row.choices;
    entry["help"] = row.help;
    out.push_back(std::move(entry));
  }
  return out;
}

template <class Row> void print_lines(std::span<const Row> table) {
  for (const auto& row : table)
    fmt::print("{:14} {:8} {:8} {}\n", row.name, to_string(row.kind), row.default_text(), row.help);
}

std::string quoted(const std::string& text) { return text.empty() ? "empty" : "`" + text + "`"; }

template <class Row> void print_table(std::span<const Row> table) {
  fmt::print("| name | field in C++ | value | unless told | what it does |\n|---|---|---|---|---|\n");
  for (const auto& row : table)
    fmt::print("| `{}` | `{}` | {} | {} | {} |\n", row.name, row.field.view(), row.expected(),
               quoted(row.default_text()), row.help);
}

void print_page() {
  fmt::print(
      "# Options\n\n"
      "Written by `kiln options --markdown` from the table in "
      "[`runtime/impl/options/options.ipp`](../include/kiln/runtime/impl/options/options.ipp); a test compares "
      "both.\n\n"
      "In C++, set the fields of `compile_options` and `run_options`, or set them by name and text "
      "(`runtime/options.hpp`). In text, a flag is true, false,\n"
      "True, False, 1, 0, on or off; in a list of pairs, a backslash makes the comma, = or backslash after it a part "
      "of "
      "the name.\n\n"
      "## Of a compilation: `compile_options`\n\n"
      "On the command line `tuning_file` is `--tuning-file PATH`, `fuse` is `--fuse` or `--no-fuse`, and `--alias` may "
      "be repeated. All verbs that read a\n"
      "model take these flags.\n\n");
  print_table(compile_option_table());
  fmt::print("\n## Of a run: `run_options`\n\n");
  print_table(run_option_table());
  fmt::print(
      "\n## Of a quantization: `quantize::quantizer_options`\n\n"
      "Set by name in C and Python ([quantize.md](quantize.md)); the table is in "
      "[`quantize/impl/options.ipp`](../include/kiln/quantize/impl/options.ipp). An option that means\nnothing to the "
      "precision is an error.\n\n");
  print_table(quantize::quantizer_option_table());
}

}  // namespace

int options(listing how) {
  if (how == listing::markdown) {
    print_page();
  } else if (how == listing::json) {
    print_json({{"compile", listed(compile_option_table())},
                {"run", listed(run_option_table())},
                {"quantize", listed(quantize::quantizer_option_table())}});
  } else {
    fmt::print("compile_options\n");
    print_lines(compile_option_table());
    fmt::print("\nrun_options\n");
    print_lines(run_option_table());
    fmt::print("\nquantizer_options\n");
    print_lines(quantize::quantizer_option_table());
  }
  return 0;
}

}  // namespace kiln::driver
