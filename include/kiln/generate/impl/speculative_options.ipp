#include "kiln/generate/speculative_options.hpp"

#include "kiln/generate/impl/number_options.hpp"

namespace kiln::language {

namespace {

constexpr double most_tokens = 16;
using o = speculative_options;
constexpr detail::number_row<o> rows[] = {
    {.name = "ngram_chained_lookup", .flag = &o::ngram_chained_lookup},
    {.name = "cooldown", .flag = &o::cooldown},
    {.name = "max_draft_tokens", .count = &o::max_draft_tokens, .least = 1, .most = most_tokens},
    {.name = "ngram_size", .count = &o::ngram_size, .most = most_tokens},
    {.name = "min_adaptive_k", .count = &o::min_adaptive_k, .most = most_tokens},
};
constexpr detail::number_options<o> table("speculative option", rows);

}  // namespace

std::span<const option_name> speculative_option_table() {
  static const auto names = table.names();
  return names;
}

void set_number(speculative_options& to, std::string_view name, double value) { table.set_number(to, name, value); }
void set_flag(speculative_options& to, std::string_view name, bool value) { table.set_flag(to, name, value); }
double get_number(const speculative_options& from, std::string_view name) { return table.get_number(from, name); }
bool get_flag(const speculative_options& from, std::string_view name) { return table.get_flag(from, name); }

void check(const speculative_options& options) {
  table.check_bounds(options);
  if (options.ngram_size == 1)
    throw error(errc::invalid_argument, "speculative option 'ngram_size': expected 0 or 2 to 16, found 1");
  if (options.ngram_chained_lookup && options.ngram_size == 0)
    throw error(errc::invalid_argument, "speculative option 'ngram_chained_lookup' needs ngram_size, which is 0");
}

}  // namespace kiln::language
