#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "kiln/cpp_export/cpp_export.hpp"
#include "kiln/pass/pipeline.hpp"

namespace kiln::bench {

/// A program of one f32 input and one f32 output as exported C++, compiled as its CMakeLists.txt says and loaded.
class exported_library {
 public:
  explicit exported_library(program p) {
    optimize(p);
    const cpp_project project = to_cpp(p, {.name = "exported"});
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln_bench_XXXXXX").string();
    const std::filesystem::path folder = mkdtemp(pattern.data());
    for (const auto& file : project.files) std::ofstream(folder / file.name, std::ios::binary) << file.text;
    std::ofstream(folder / project.weights_name, std::ios::binary)
        .write(reinterpret_cast<const char*>(project.weights.data()),
               static_cast<std::streamsize>(project.weights.size()));
    std::ofstream(folder / "shared.cpp")
        << "#include \"exported.hpp\"\nstatic exported::network network;\n"
           "extern \"C\" void run(const float* in, float* out) { network.run(in, out); }\n";
    const std::string at = folder.string();
    const bool built =
        std::system(("cd " + at +
                     " && ${CXX:-g++} -std=c++20 -O3 -march=native -fno-math-errno -fno-trapping-math "
                     "-ffp-contract=fast -Wno-psabi -fPIC -shared shared.cpp exported_weights.S -o shared.so")
                        .c_str()) == 0;
    void* const library = built ? dlopen((at + "/shared.so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library) run_ = reinterpret_cast<void (*)(const float*, float*)>(dlsym(library, "run"));
    std::filesystem::remove_all(folder);
    if (!run_) throw std::runtime_error("the exported program does not build");
  }
  void operator()(const float* in, float* out) const { run_(in, out); }

 private:
  void (*run_)(const float*, float*) = nullptr;
};

}  // namespace kiln::bench
