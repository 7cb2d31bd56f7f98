#include "kiln/generate/search_options.hpp"

#include "kiln/generate/impl/number_options.hpp"

namespace kiln::language {

namespace {

using o = search_options;
constexpr detail::number_row<o> rows[] = {
    {.name = "do_sample", .flag = &o::do_sample},
    {.name = "early_stopping", .flag = &o::early_stopping},
    {.name = "past_present_share_buffer", .flag = &o::past_present_share_buffer},
    {.name = "min_length", .count = &o::min_length},
    {.name = "max_length", .count = &o::max_length},
    {.name = "batch_size", .count = &o::batch_size, .least = 1, .most = 32},
    {.name = "num_beams", .count = &o::num_beams, .least = 1, .most = 32},
    {.name = "num_return_sequences", .count = &o::num_return_sequences, .least = 1, .most = 32},
    {.name = "top_k", .count = &o::top_k},
    {.name = "no_repeat_ngram_size", .count = &o::no_repeat_ngram_size},
    {.name = "random_seed", .count = &o::random_seed, .least = -1},
    {.name = "chunk_size", .piece = &o::chunk_size, .least = -detail::unbounded},
    {.name = "top_p", .number = &o::top_p, .most = 1},
    {.name = "temperature", .number = &o::temperature},
    {.name = "repetition_penalty", .number = &o::repetition_penalty},
    {.name = "length_penalty", .number = &o::length_penalty, .least = -detail::unbounded},
    {.name = "diversity_penalty", .number = &o::diversity_penalty, .least = -detail::unbounded},
    {.name = "blank_penalty", .number = &o::blank_penalty, .least = -detail::unbounded},
};

constexpr detail::number_options<o> table("search option", rows);

}  // namespace

std::span<const option_name> search_option_table() {
  static const auto names = table.names();
  return names;
}

void set_number(search_options& to, std::string_view name, double value) { table.set_number(to, name, value); }
void set_flag(search_options& to, std::string_view name, bool value) { table.set_flag(to, name, value); }
double get_number(const search_options& from, std::string_view name) { return table.get_number(from, name); }
bool get_flag(const search_options& from, std::string_view name) { return table.get_flag(from, name); }

void check(search_options& options, std::int64_t context_length, std::int64_t vocabulary_size) {
  table.check_bounds(options);
  if (options.max_length == 0) options.max_length = context_length;
  const auto fault = [](const std::string& what) { throw error(errc::invalid_argument, what); };
  if (options.max_length > context_length)
    fault("max_length (" + std::to_string(options.max_length) + ") cannot be greater than model context_length (" +
          std::to_string(context_length) + ")");
  if (options.min_length > options.max_length)
    fault("min_length (" + std::to_string(options.min_length) + ") is greater than max_length (" +
          std::to_string(options.max_length) + ")");
  if (options.do_sample && options.top_k > vocabulary_size)
    fault("top_k (" + std::to_string(options.top_k) + ") is greater than the vocabulary, " +
          std::to_string(vocabulary_size));
  if (options.num_return_sequences > options.num_beams)
    fault("num_return_sequences (" + std::to_string(options.num_return_sequences) + ") is greater than num_beams (" +
          std::to_string(options.num_beams) + ")");
  if (options.num_beams > 1 && options.do_sample) fault("TopK and TopP cannot be used with a beam search");
  if (options.num_beams > 1 && !options.stop_strings.empty())
    fault("stop_strings need num_beams 1, found " + std::to_string(options.num_beams));
  for (const std::string& s : options.stop_strings)
    if (s.empty()) fault("stop_strings: a stop string has a character at least: found an empty one");
  if (options.num_beams > 1 && vocabulary_size < 2) fault("beams need a vocabulary of at least 2 tokens");
}

}  // namespace kiln::language
