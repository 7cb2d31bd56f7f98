// Continues several prompts side by side through GenAI's C++ interface: model_generate [-m FOLDER] [-e PROVIDER]
#include <vector>

#include "common.hpp"

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const arguments& given) {
    // [generate]
    const auto model = given.load();
    const auto tokenizer = OgaTokenizer::Create(*model);
    const std::vector<const char*> prompts = {"In the beginning", "And the LORD said unto Moses", "Blessed are"};
    const auto sequences = OgaSequences::Create();
    for (const char* prompt : prompts) tokenizer->Encode(prompt, *sequences);

    const auto params = OgaGeneratorParams::Create(*model);
    params->SetSearchOption("max_length", 48);
    params->SetSearchOption("batch_size", static_cast<double>(prompts.size()));
    const auto generator = OgaGenerator::Create(*model, *params);
    generator->AppendTokenSequences(*sequences);
    while (!generator->IsDone()) generator->GenerateNextToken();
    for (std::size_t k = 0; k < prompts.size(); ++k)
      std::cout << tokenizer->Decode(generator->GetSequenceData(k), generator->GetSequenceCount(k)) << "\n";
    // [/generate]
  });
}
