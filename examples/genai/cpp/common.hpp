#pragma once
#include <ort_genai.h>

#include <iostream>
#include <string>

/// `-m FOLDER -e PROVIDER`: a model's folder, and a provider in place of its configuration's.
struct arguments {
  std::string folder = "examples/models/scripture", provider = "follow_config";
  arguments(int argc, char** argv) {
    for (int k = 1; k < argc; ++k) {
      const std::string flag = argv[k];
      if ((flag != "-m" && flag != "-e") || k + 1 == argc)
        throw std::runtime_error("expected -m FOLDER or -e PROVIDER, found " + flag);
      (flag == "-m" ? folder : provider) = argv[++k];
    }
  }
  std::unique_ptr<OgaModel> load() const {
    const auto config = OgaConfig::Create(folder.c_str());
    if (provider != "follow_config") {
      config->ClearProviders();
      if (provider != "cpu") config->AppendProvider(provider.c_str());
    }
    return OgaModel::Create(*config);
  }
};

/// Runs an example; what it throws is printed.
template <class Example> int run_example(int argc, char** argv, Example&& example) {
  const OgaHandle handle;
  try {
    example(arguments(argc, argv));
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}

/// Prints a text as it is made.
inline void print_to_end(OgaGenerator& generator, OgaTokenizerStream& stream) {
  while (!generator.IsDone()) {
    generator.GenerateNextToken();
    std::cout << stream.Decode(generator.GetNextTokens()[0]) << std::flush;
  }
  std::cout << "\n";
}
