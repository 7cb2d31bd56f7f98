#include "kiln/generate/search_options.hpp"

#include <array>
#include <cmath>
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/runtime/option_row.hpp"

namespace kiln::language {

namespace {

constexpr double unbounded = 9007199254740992.0;  // whole numbers up to here are exact as doubles

// A row is an option: one of the four members is set.
struct row {
  std::string_view name;
  bool search_options::*flag = nullptr;
  std::int64_t search_options::*count = nullptr;
  std::optional<std::int64_t> search_options::*piece = nullptr;
  double search_options::*number = nullptr;
  double least = 0, most = unbounded;
};
using o = search_options;
constexpr row rows[] = {
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
    {.name = "chunk_size", .piece = &o::chunk_size, .least = -unbounded},
    {.name = "top_p", .number = &o::top_p, .most = 1},
    {.name = "temperature", .number = &o::temperature},
    {.name = "repetition_penalty", .number = &o::repetition_penalty},
    {.name = "length_penalty", .number = &o::length_penalty, .least = -unbounded},
    {.name = "diversity_penalty", .number = &o::diversity_penalty, .least = -unbounded},
    {.name = "blank_penalty", .number = &o::blank_penalty, .least = -unbounded},
};

const row& find(std::string_view name) {
  for (const row& r : rows)
    if (r.name == name) return r;
  std::string all;
  for (const row& r : rows) all += (all.empty() ? "" : ", ") + std::string(r.name);
  throw error(errc::not_found, "no search option '" + std::string(name) + "'; there are " + all);
}
[[noreturn]] void refuse(const row& r, const std::string& expected, const std::string& found) {
  throw error(errc::invalid_argument,
              "search option '" + std::string(r.name) + "': expected " + expected + ", found " + found);
}

}  // namespace

std::span<const search_option_info> search_option_table() {
  static const auto table = [] {
    std::array<search_option_info, std::size(rows)> all;
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = {rows[k].name, rows[k].flag != nullptr};
    return all;
  }();
  return table;
}

void set_number(search_options& to, std::string_view name, double value) {
  const row& r = find(name);
  if (r.flag) refuse(r, "true or false", kiln::detail::write_number(value));
  if (!(value >= r.least && value <= r.most))
    refuse(r,
           r.most == unbounded ? r.least == -unbounded ? "a number" : "at least " + kiln::detail::write_number(r.least)
                               : kiln::detail::write_number(r.least) + " to " + kiln::detail::write_number(r.most),
           kiln::detail::write_number(value));
  if (r.number) {
    to.*r.number = value;
    return;
  }
  if (value != std::floor(value)) refuse(r, "a whole number", kiln::detail::write_number(value));
  const auto whole = static_cast<std::int64_t>(value);
  if (r.count)
    to.*r.count = whole;
  else if (whole > 0)
    to.*r.piece = whole;
  else
    (to.*r.piece).reset();
}
void set_flag(search_options& to, std::string_view name, bool value) {
  const row& r = find(name);
  if (!r.flag) refuse(r, "a number", value ? "true" : "false");
  to.*r.flag = value;
}
double get_number(const search_options& from, std::string_view name) {
  const row& r = find(name);
  if (r.flag) refuse(r, "to be read as true or false", "a request for a number");
  if (r.number) return from.*r.number;
  return static_cast<double>(r.count ? from.*r.count : (from.*r.piece).value_or(0));
}
bool get_flag(const search_options& from, std::string_view name) {
  const row& r = find(name);
  if (!r.flag) refuse(r, "to be read as a number", "a request for true or false");
  return from.*r.flag;
}

namespace {

// Fields may have been set without their names.
void check_bounds(const search_options& options) {
  search_options checked;
  for (const row& r : rows)
    if (!r.flag) set_number(checked, r.name, get_number(options, r.name));
}

}  // namespace

void check(search_options& options, std::int64_t context_length, std::int64_t vocabulary_size) {
  check_bounds(options);
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
  if (options.num_beams > 1 && vocabulary_size < 2) fault("beams need a vocabulary of at least 2 tokens");
}

}  // namespace kiln::language
