#include <fmt/format.h>

#include <filesystem>

#include "genai.hpp"
#include "genai_model.hpp"
#include "kiln/generate/saved_model.hpp"
#include "progress.hpp"

namespace kiln::driver {

namespace {

struct save_flags {
  std::string folder, output;
  decoder_flags decoder;
};

int save(const save_flags& flags) {
  {
    const busy_line busy("saving " + flags.folder);
    language::config c = language::read_config(flags.folder);
    language::overlay(c, overlay_of(flags.decoder), "the command line");
    language::save_model(c, flags.output);
  }
  const std::filesystem::path file = std::filesystem::path(flags.output) / "model.kiln";
  fmt::print("{}: {} bytes\n", file.string(), std::filesystem::file_size(file));
  return 0;
}

}  // namespace

void add_genai_save(CLI::App& genai, std::function<int()>& run) {
  auto flags = std::make_shared<save_flags>();
  CLI::App* verb = genai.add_subcommand("save", "Write a model of weights alone as a folder with a model.kiln");
  verb->add_option("folder", flags->folder, "A folder with config.json and *.safetensors, or a GGUF file")->required();
  verb->add_option("-o,--output", flags->output, "the folder to write")->required()->type_name("FOLDER");
  verb->add_option("--compute-type", flags->decoder.compute_type, "What it computes in: f32, f16 or bf16");
  verb->add_option("--weights", flags->decoder.weight_type,
                   "What its matrices of floats are stored as: int4, int8, mxfp8, mxfp4 or nvfp4");
  verb->callback([flags, &run] { run = [flags] { return save(*flags); }; });
}

}  // namespace kiln::driver
