// fuzz_tflite_import CASES SEED FILE...: damages TFLite's files, their bytes and (as the JSON that flatc would make of
// them) the numbers in them, so that what is behind flatbuffers' verifier is reached. Each is a program or an error of
// kiln's. Exits with 1 at the first case that ends otherwise, whose file it leaves in the folder of temporary files.
#include "fuzz/damage.hpp"
#include "tensorflow/tflite_text.hpp"

namespace {

using namespace kiln;
using namespace kiln::tensorflow;
using namespace kiln::fuzz;

// One of the numbers in a text, or a name, becomes another.
std::string other_numbers(std::string json, generator& random) {
  constexpr const char* telling[] = {"0",   "1",   "2",           "3",          "4",     "-1",
                                     "127", "255", "-2147483648", "2147483647", "65536", "7"};
  for (std::size_t n = 1 + below(random, 3); n != 0; --n) {
    std::size_t at = json.find_first_of("0123456789", below(random, json.size()));
    if (at == std::string::npos) continue;
    std::size_t end = json.find_first_not_of("0123456789.e+-", at);
    end = std::min(end, json.size());
    while (at > 0 && std::string_view("0123456789.-").find(json[at - 1]) != std::string_view::npos) --at;
    if (at > 0 && (std::isalpha(static_cast<unsigned char>(json[at - 1])) || json[at - 1] == '_')) continue;
    json.replace(at, end - at, telling[below(random, std::size(telling))]);
  }
  return json;
}

class fuzzer {
 public:
  explicit fuzzer(std::span<char* const> names) {
    for (const char* const name : names) {
      std::ifstream in(name, std::ios::binary);
      files_.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      parse_model(std::as_bytes(std::span(files_.back())));
      texts_.push_back(tflite_json(files_.back()));
    }
  }

  bool run(std::size_t cases, std::uint64_t seed) {
    return run_cases(cases, seed, [&](std::size_t i, generator& random, std::string& last) {
      const std::size_t k = i / 2 % files_.size();
      if (i % 2 == 0) last = damaged(files_[k], random);
      if (i % 2 == 1 && !parse_tflite(other_numbers(texts_[k], random), last)) return;
      import_options how;
      how.common.max_nodes = 512;
      how.common.max_nesting = 16;
      how.common.max_bytes = 1 << 24;
      parse_model(std::as_bytes(std::span(last)), how);
    });
  }

 private:
  std::vector<std::string> files_, texts_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print("usage: fuzz_tflite_import CASES SEED FILE...\n");
    return 2;
  }
  const std::span<char* const> words(argv, static_cast<std::size_t>(argc));
  return fuzzer(words.subspan(3)).run(std::stoull(argv[1]), std::stoull(argv[2])) ? 0 : 1;
}
