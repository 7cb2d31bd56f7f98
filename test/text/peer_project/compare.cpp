// Encodes and decodes the lines of a file and compares with the answers of another tokenizer; see peer.sh.
// compare_tokenizer FOLDER LINES ANSWERS: exits with 1 where one differs, or a stream says something else than the
// whole.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/text/token_stream.hpp"
#include "kiln/text/tokenizer.hpp"

namespace {

using namespace kiln::language;

int compare(const char* folder, const char* lines_file, const char* answers_file) {
  const tokenizer t = tokenizer::load(std::filesystem::path(folder));
  std::ifstream lines(lines_file), answers(answers_file);
  std::size_t all = 0, ids = 0, special = 0, texts = 0, streams = 0;
  for (std::string line, answer; std::getline(lines, line); ++all) {
    if (!std::getline(answers, answer)) return std::fprintf(stderr, "answer %zu is missing\n", all), 1;
    const auto expected = nlohmann::json::parse(answer);
    const tokens plain = t.encode(line);
    const std::string text = t.decode(plain);
    if (plain != expected[0].get<tokens>() && ids++ < 3) std::fprintf(stderr, "ids differ: %s\n", line.c_str());
    if (t.encode(line, {true}) != expected[1].get<tokens>()) ++special;
    if (text != expected[2].get<std::string>() && texts++ < 3)
      std::fprintf(stderr, "text differs: %s\n  is %s\n", expected[2].dump().c_str(),
                   nlohmann::json(text).dump().c_str());
    token_stream stream(t);
    std::string joined;
    for (const token id : plain) joined += stream.put(id);
    joined += stream.finish();
    if (joined != text) ++streams;
  }
  std::printf("%zu lines: %zu ids differ, %zu with special tokens, %zu texts, %zu streams\n", all, ids, special, texts,
              streams);
  return all == 0 || ids + special + texts + streams != 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return compare(argv[1], argv[2], argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
