#include "compile_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kiln/core/error.hpp"

namespace kiln::driver {

namespace {

// Sets the option, and refuses as the command line does.
void set(const compile_option& row, compile_options& to, const std::string& value) {
  try {
    row.set(to, value);
  } catch (const error& e) {
    throw CLI::ValidationError(flag_of(row), fmt::format("expected {}, found {}", e.expected(), e.found()));
  }
}

std::string form_of(const option_info& info) {
  switch (info.kind) {
    case option_kind::count: return "N";
    case option_kind::number: return "NUMBER";
    case option_kind::path: return "PATH";
    case option_kind::choice: return fmt::format("{}", fmt::join(info.choices, "|"));
    case option_kind::pairs: return "NAME=NAME";
    default: return "TEXT";
  }
}

}  // namespace

std::string flag_of(const option_info& info) {
  std::string out = "--" + std::string(info.name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

void add_compile_flags(CLI::App& app, compile_options& o) {
  for (const compile_option& row : compile_option_table()) {
    const std::string flag = flag_of(row);
    if (row.kind == option_kind::flag) {
      const std::string help =
          fmt::format("{} ({} unless told)", row.help, row.default_text() == "true" ? "on" : "off");
      app.add_flag(fmt::format("{},!--no-{}", flag, flag.substr(2)), help)->each([&](const std::string& value) {
        set(row, o, value);
      });
      continue;
    }
    CLI::Option& option = *app.add_option_function<std::vector<std::string>>(
        flag, [&](const std::vector<std::string>& all) { set(row, o, fmt::format("{}", fmt::join(all, ","))); },
        std::string(row.help));
    option.type_name(form_of(row))->expected(1)->allow_extra_args(false)->default_str(row.default_text());
    option.multi_option_policy(row.kind == option_kind::pairs ? CLI::MultiOptionPolicy::TakeAll
                                                              : CLI::MultiOptionPolicy::Throw);
  }
}

}  // namespace kiln::driver
