// Answers questions, a line each and each by itself, through GenAI's C++ interface: model_qa [-m FOLDER] [-e PROVIDER]
#include "common.hpp"

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const arguments& given) {
    const auto model = given.load();
    const auto tokenizer = OgaTokenizer::Create(*model);
    const auto params = OgaGeneratorParams::Create(*model);
    for (std::string line; std::getline(std::cin, line);) {
      if (line.empty()) continue;
      const auto question = OgaSequences::Create();
      tokenizer->Encode(line.c_str(), *question);
      const auto generator = OgaGenerator::Create(*model, *params);
      generator->AppendTokenSequences(*question);
      const auto stream = OgaTokenizerStream::Create(*tokenizer);
      print_to_end(*generator, *stream);
    }
  });
}
