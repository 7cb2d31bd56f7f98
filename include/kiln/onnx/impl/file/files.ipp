#include "kiln/onnx/impl/file/files.hpp"

#include <cstdio>
#include <fstream>

namespace kiln::onnx {

void write_file(const std::string& path, std::string_view bytes) {
  const std::string partial = path + ".part";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  const bool is_written = file && file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())) && file.flush();
  file.close();
  if (is_written && std::rename(partial.c_str(), path.c_str()) == 0) return;
  std::remove(partial.c_str());
  throw error(errc::io, "cannot be written").at_source(path);
}

}  // namespace kiln::onnx
