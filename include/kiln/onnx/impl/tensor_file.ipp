#include <cstdio>
#include <fstream>

#include "kiln/onnx/impl/mapped_file.hpp"
#include "kiln/onnx/impl/value_message.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

named_argument read_value(const std::string& path, dtype kind) try {
  const buffer file = map_file(path);
  const std::size_t slash = path.rfind('/');
  external_files files{slash == std::string::npos ? "." : path.substr(0, slash), 0, {}, {}};
  if (kind == dtype::sequence || kind == dtype::optional || kind == dtype::map) {
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    return read_value_message(bytes, kind, files, 0);
  }
  onnx_proto::TensorProto message;
  parse_message(message, {file.data(), file.size()}, 8, "a tensor");
  if (!message.has_data_type()) raise(errc::malformed, "not an ONNX tensor");
  tensor t = read_tensor_message(message, files);
  if (!t.fault.empty()) raise(errc::unsupported, "tensor '" + t.name + "' " + t.fault);
  return {t.name, argument(t.value)};
} catch (error& e) {
  throw e.at_source(path);
}

named_argument read_tensor(const std::string& path) { return read_value(path, dtype::f32); }

void write_tensor(const std::string& path, const argument& value, const std::string& name) try {
  const std::string bytes = value_message(value, name);
  const std::string partial = path + ".part";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  if (!file || !file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())) || !file.flush()) {
    file.close();
    std::remove(partial.c_str());
    raise(errc::io, "cannot be written");
  }
  file.close();
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    raise(errc::io, "cannot be written");
  }
} catch (error& e) {
  throw e.at_source(path);
}

}  // namespace kiln::onnx
