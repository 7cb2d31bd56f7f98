#pragma once
#include <dlfcn.h>

#include <fstream>
#include <stdexcept>

#include "kiln/backend/hip/impl/rows/row_program.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::hip {

/// Kernels that are written at run time, compiled for the emulated device by the host's compiler, all in one library.
class written_kernels {
 public:
  /// Adds a kernel over operands, then scratch, and the numbers where they are passed; its number.
  int add(const source& s, std::span<const tensor> in, std::span<const tensor> out, std::string_view scratch,
          bool passes_numbers) {
    const std::string name = s.entry + "_" + std::to_string(count_);
    std::string text = s.text;
    const std::size_t body = text.find("extern \"C\" __global__");
    text.replace(text.find(s.entry + "(", body), s.entry.size(), name);
    const std::size_t numbers = text.find("struct passed_numbers");
    if (numbers != std::string::npos && count_ > 0) {
      const std::size_t end = text.find('\n', numbers);
      text.erase(numbers, end - numbers);
    }
    texts_ += text + "\n";
    calls_ += "    case " + std::to_string(count_) + ": " + name + "(";
    int at = 0;
    const auto operand = [&](std::string_view type) {
      calls_ += std::string(at ? ", " : "") + "static_cast<" + std::string(type) + "*>(p[" + std::to_string(at) + "])";
      ++at;
    };
    for (const tensor& t : in) operand(stored_name(t.type));
    for (const tensor& t : out) operand(stored_name(t.type));
    if (!scratch.empty()) operand(scratch);
    if (passes_numbers) calls_ += ", *numbers";
    calls_ += "); break;\n";
    return count_++;
  }

  /// Compiles what was added.
  void build() {
    const test::temporary_folder folder;
    const auto& at = folder.path();
    std::ofstream(at / "kernels.cpp")
        << "#include \"hip_kernels/emulated_device.hpp\"\n"
           "#define __global__\n#define __launch_bounds__(...)\n#define __shared__ static\n"
           "struct grid_place { unsigned x, y; };\n"
           "#define threadIdx (grid_place{unsigned(kiln::gpu::now.thread), 0u})\n"
           "#define blockIdx (grid_place{unsigned(kiln::gpu::now.block_x), unsigned(kiln::gpu::now.block_y)})\n"
        << texts_
        << "extern \"C\" void run(int kernel, int across, int down, int threads, void** p, const passed_numbers* "
           "numbers) {\n"
        << "  kiln::gpu::run_grid(across, down, threads, 0, [&](char*) {\n    switch (kernel) {\n"
        << calls_ << "    }\n  });\n}\n";
    const std::string source = KILN_SOURCE_DIR;
    const std::string command = "${CXX:-c++} -std=c++20 -O0 -w -fPIC -shared -I" + source + "/include -I" + source +
                                "/test " + at.string() + "/kernels.cpp " + source +
                                "/test/hip_kernels/emulated_device.cpp " + source +
                                "/test/hip_kernels/emulated_copies.cpp -o " + at.string() + "/kernels.so";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("written kernels do not compile:\n" + texts_);
    library_ = dlopen((at / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_) run_ = reinterpret_cast<run_function>(dlsym(library_, "run"));
    if (!run_) throw std::runtime_error("written kernels are not loaded");
  }
  ~written_kernels() {
    if (library_) dlclose(library_);
  }

  void run(int kernel, extent3 grid, extent3 block, std::vector<void*> pointers,
           const std::vector<std::int64_t>& numbers) const {
    passed_numbers passed;
    std::copy(numbers.begin(), numbers.end(), passed.at);
    run_(kernel, static_cast<int>(grid.x), static_cast<int>(grid.y), static_cast<int>(block.x), pointers.data(),
         &passed);
  }

 private:
  using run_function = void (*)(int, int, int, int, void**, const passed_numbers*);
  std::string texts_, calls_;
  int count_ = 0;
  void* library_ = nullptr;
  run_function run_ = nullptr;
};

}  // namespace kiln::hip
