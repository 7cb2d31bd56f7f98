#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/value_message.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

named_argument read_value(const std::string& path, dtype kind) try {
  const buffer file = map_file(path);
  const std::size_t slash = path.rfind('/');
  external_files files{slash == std::string::npos ? "." : path.substr(0, slash), 0, {}, {}};
  if (kind == dtype::sequence || kind == dtype::optional || kind == dtype::map)
    return read_value_message({file.data(), file.size()}, kind, files, 0);
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
  write_file(path, value_message(value, name));
} catch (error& e) {
  throw e.at_source(path);
}

}  // namespace kiln::onnx
