// Talks with a model, a line a turn, through GenAI's C++ interface: model_chat [-m FOLDER] [-e PROVIDER]. Ctrl+C ends
// an answer, which is then forgotten. Folders without a chat template continue the line.
#include <csignal>

#include "common.hpp"

static OgaGenerator* answering = nullptr;

// The text as a JSON string.
static std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

static std::string prompt_of(const OgaTokenizer& tokenizer, const std::string& line) try {
  const std::string messages = "[{\"role\": \"user\", \"content\": " + quoted(line) + "}]";
  return std::string(tokenizer.ApplyChatTemplate(nullptr, messages.c_str(), nullptr, true));
} catch (const std::runtime_error&) {
  return line;
}

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const arguments& given) {
    const auto model = given.load();
    const auto tokenizer = OgaTokenizer::Create(*model);
    const auto stream = OgaTokenizerStream::Create(*tokenizer);
    const auto params = OgaGeneratorParams::Create(*model);
    const auto generator = OgaGenerator::Create(*model, *params);
    answering = generator.get();
    std::signal(SIGINT, [](int) { answering->SetRuntimeOption("terminate_session", "1"); });
    for (std::string line; std::getline(std::cin, line);) {
      if (line.empty()) continue;
      const auto turn = OgaSequences::Create();
      tokenizer->Encode(prompt_of(*tokenizer, line).c_str(), *turn);
      const std::size_t before = generator->TokenCount();
      try {
        generator->AppendTokenSequences(*turn);
        print_to_end(*generator, *stream);
      } catch (const std::runtime_error& e) {
        if (!generator->IsSessionTerminated()) throw;
        std::cout << "\n(" << e.what() << ")\n";
        generator->SetRuntimeOption("terminate_session", "0");
        generator->RewindTo(before);
      }
    }
  });
}
