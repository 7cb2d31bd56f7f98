#include "kiln/onnx/import.hpp"

#include <filesystem>

#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/read_model.hpp"
#include "kiln/onnx/impl/import/importer.hpp"

namespace kiln::onnx {

namespace {

std::vector<std::string> remarks_on(const model& m) {
  std::vector<std::string> out;
  for (const auto& [domain, version] : m.versions)
    if (domain.empty() && version > newest_opset)
      out.push_back("the model asks for operator set " + std::to_string(version) + " of ai.onnx, the newest known is " +
                    std::to_string(newest_opset) + ": its operators are read as of that one");
  return out;
}

imported import_named(model m, const import_options& options, const std::string& path) {
  imported out;
  importer from(m, options, path);
  out.graph = from.run();
  out.defaults = std::move(from.defaults());
  out.ir_version = m.ir_version;
  out.remarks = remarks_on(m);
  out.versions = std::move(m.versions);
  out.producer = std::move(m.producer);
  out.metadata = std::move(m.metadata);
  return out;
}

imported import_bytes(std::span<const std::byte> bytes, const std::string& directory, const import_options& options,
                      const std::string& path, const buffer* file = nullptr) {
  std::error_code none;
  const auto real = std::filesystem::canonical(path, none);
  return import_named(read_messages(bytes, directory, options, real.parent_path().string(), file), options, path);
}

}  // namespace

imported read_model(const std::string& path, const import_options& options) try {
  const buffer file = map_file(path);
  const std::size_t slash = path.rfind('/');
  return import_bytes({file.data(), file.size()}, slash == std::string::npos ? "." : path.substr(0, slash + 1), options,
                      path, &file);
} catch (error& e) {
  throw e.at_source(path);
}

imported parse_model(std::span<const std::byte> bytes, const std::string& directory, const import_options& options) {
  return import_bytes(bytes, directory, options, "");
}

imported import_model(model m, const import_options& options) { return import_named(std::move(m), options, ""); }

std::vector<node_fault> faulty_nodes(const model& m, const import_options& options) {
  std::vector<node_fault> out;
  importer trial(m, options, "");
  trial.note_faulty_nodes(out);
  try {
    trial.run();
  } catch (const error&) {
    if (out.empty()) throw;
  }
  return out;
}

}  // namespace kiln::onnx
