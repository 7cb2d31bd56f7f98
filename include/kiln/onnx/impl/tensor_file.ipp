#include <cstdio>
#include <fstream>

#include "kiln/onnx/impl/mapped_file.hpp"
#include "kiln/onnx/impl/packed.hpp"
#include "kiln/onnx/impl/proto.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

named_argument read_tensor(const std::string& path) try {
  const buffer file = map_file(path);
  onnx_proto::TensorProto message;
  parse_message(message, {file.data(), file.size()}, 8, "a tensor");
  if (!message.has_data_type()) raise(errc::malformed, "not an ONNX tensor");
  const std::size_t slash = path.rfind('/');
  external_files files{slash == std::string::npos ? "." : path.substr(0, slash), 0, {}};
  tensor t = read_tensor_message(message, files);
  if (!t.fault.empty()) raise(errc::unsupported, "tensor '" + t.name + "' " + t.fault);
  return {t.name, argument(t.value)};
} catch (error& e) {
  throw e.at_source(path);
}

void write_tensor(const std::string& path, const argument& value, const std::string& name) {
  const argument dense = value.contiguous();
  const dtype t = dense.get_shape().type;
  const auto bytes = static_cast<std::size_t>(file_bytes(t, dense.elements()));
  if (bytes >= (std::size_t{1} << 31) - 4096)
    raise(errc::limit, path + ": a tensor message ends at 2 GiB, this one has " + std::to_string(bytes) + " bytes");
  onnx_proto::TensorProto message;
  for (const dimension d : dense.get_shape().lens) message.add_dims(d.value());
  message.set_data_type(static_cast<int>(to_element(t)));
  if (!name.empty()) message.set_name(name);
  message.set_raw_data(packed(t, dense.data(), dense.elements()));
  const std::string partial = path + ".part";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  if (!file || !message.SerializeToOstream(&file) || !file.flush()) {
    file.close();
    std::remove(partial.c_str());
    raise(errc::io, path + ": cannot be written");
  }
  file.close();
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    raise(errc::io, path + ": cannot be written");
  }
}

}  // namespace kiln::onnx
