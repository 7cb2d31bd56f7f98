#include <cstddef>
#include <cstdint>

#include "kiln/onnx/import.hpp"

// libFuzzer's entry: any bytes are a model or an error, never anything else. test/fuzz/run.sh builds and runs it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kiln::onnx::import_options options;
  options.max_nodes = 512;
  options.max_nesting = 8;
  options.max_bytes = 1 << 20;
  try {
    (void)kiln::onnx::parse_model({reinterpret_cast<const std::byte*>(data), size}, "/nonexistent", options);
  } catch (const kiln::error&) {
  }
  return 0;
}
