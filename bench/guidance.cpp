// Times masks of guides over a vocabulary of 32768 tokens, and prints a Markdown table of microseconds: building the
// guide, masks along texts that begin with a new guide (median of all; of those that took 10 times what asking again
// takes: median, 99 in 100, longest), and asking again. Texts are drawn from the masks with a fixed seed.
//
//     bench_guidance [COUNT]
//
// COUNT texts of each language, 20 if none is given.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kiln/text/guidance/guide.hpp"

namespace {

using namespace kiln::language;

template <class Work> double us_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// An end token, every byte, words with and without a space before them, numbers, and runs of JSON's marks.
std::vector<std::string> vocabulary_texts() {
  std::mt19937 random(1);
  std::vector<std::string> texts{""};
  for (int b = 0; b < 256; ++b) texts.emplace_back(1, static_cast<char>(b));
  std::set<std::string> known(texts.begin(), texts.end());
  const std::string letters = "etaoinshrdlucmfwypvbgkqjxz", marks = "{}[]\":, \n";
  while (texts.size() < 32768) {
    const auto kind = random() % 16;
    const std::string& from = kind == 0 ? marks : kind == 1 ? "0123456789" : letters;
    std::string t(kind % 2 == 0 && kind != 0 ? 1 : 0, ' ');
    for (std::size_t n = 2 + random() % 7; n > 0; --n)
      t += from[std::min(random() % from.size(), random() % from.size())];
    if (known.insert(t).second) texts.push_back(t);
  }
  return texts;
}

double quantile(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all.empty() ? 0 : all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
}

}  // namespace

int main(int count, char** words) {
  const int texts = count > 1 ? std::stoi(words[1]) : 20;
  const guide_vocabulary v(vocabulary_texts(), {0});
  std::vector<std::uint32_t> bits(v.size() / 32);
  fmt::print("| language | guide | median | computed | 99 % | longest | again |\n|---|---|---|---|---|---|---|\n");
  const auto measure = [&](const char* name, const auto& make) {
    std::vector<double> building, first, computed, again;
    std::mt19937 random(5);
    for (int k = 0; k < texts; ++k) {
      building.push_back(us_of([&] { make(); }));
      guide g = make();
      for (int step = 0; step < 100 && !g.is_finished(); ++step) {
        first.push_back(us_of([&] { g.mask(bits); }));
        again.push_back(us_of([&] { g.mask(bits); }));
        if (first.back() > 10 * again.back()) computed.push_back(first.back());
        std::vector<token> choices;
        for (token id = 0; id < static_cast<token>(v.size()); ++id)
          if ((bits[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0) choices.push_back(id);
        if (choices.empty()) break;
        g.advance(choices[random() % choices.size()]);
      }
    }
    fmt::print("| {} | {:.0f} | {:.1f} | {:.0f} | {:.0f} | {:.0f} | {:.2f} |\n", name, quantile(building, 0.5),
               quantile(first, 0.5), quantile(computed, 0.5), quantile(computed, 0.99), quantile(computed, 1),
               quantile(again, 0.5));
  };
  measure("date", [&] { return guide::regex(v, "\\d{4}-\\d{2}-\\d{2}( [a-z]+)*"); });
  measure("words", [&] { return guide::regex(v, "(\\w+[ ,.])*\\w+"); });
  measure("any JSON", [&] { return guide::json_schema(v, "true"); });
  measure("person", [&] {
    return guide::json_schema(v, R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 40},
      "age": {"type": "integer"}, "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
      "address": {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type": "string", "pattern": "^\\d{5}$"}},
      "required": ["street", "zip"], "additionalProperties": false}}, "required": ["name", "age", "tags", "address"],
      "additionalProperties": false})");
  });
}
