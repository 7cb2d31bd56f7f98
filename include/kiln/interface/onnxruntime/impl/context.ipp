#include "kiln/interface/onnxruntime/context.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "kiln/runtime/saved_program.hpp"
#include "kiln/version.hpp"

namespace kiln::onnxruntime {

namespace {

namespace fs = std::filesystem;
constexpr const char* source = "KilnExecutionProvider";

const onnx::attribute* find(const onnx::node& n, std::string_view name) {
  const auto found =
      std::find_if(n.attributes.begin(), n.attributes.end(), [&](const onnx::attribute& a) { return a.name == name; });
  return found == n.attributes.end() ? nullptr : &*found;
}

std::string text_of(const onnx::node& n, std::string_view name) {
  const onnx::attribute* const a = find(n, name);
  return a ? a->text : "";
}

void expect(const onnx::node& n, std::string_view name, std::string_view here) {
  const std::string found = text_of(n, name);
  if (found != here)
    raise(fault::of(errc::unsupported, "attribute " + std::string(name) + " of EPContext node '" + n.name + "'", here,
                    std::string_view(found)));
}

// Attributes of a node under construction.
class attribute_list {
 public:
  explicit attribute_list(const host& ort) : ort_(ort) {}
  void add(const char* name, std::int64_t value) { add(name, &value, 1, attribute_type::integer); }
  void add(const char* name, std::string_view text) {
    add(name, text.data(), static_cast<int>(text.size()), attribute_type::text);
  }
  std::vector<OrtOpAttr*>& all() { return all_; }

 private:
  void add(const char* name, const void* data, int size, attribute_type type) {
    OrtOpAttr* made = nullptr;
    ort_.call(api::create_attribute, name, data, size, type, &made);
    all_.push_back(made);
  }
  const host& ort_;
  std::vector<OrtOpAttr*> all_;
};

std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> out;
  for (const std::string& n : names) out.push_back(n.c_str());
  return out;
}

// The bytes of a program beside the model, as the node names them.
std::string write_beside(const context_settings& how, const std::string& model, const std::string& name,
                         const saved_parts& parts) {
  const fs::path target = how.file.empty() ? fs::path(model) : fs::path(how.file);
  if (target.empty())
    raise(errc::invalid_argument, "a model from memory has no folder: ep.context_file_path or ep.context_embed_mode 1");
  const std::string file = target.stem().string() + "_" + file_name(name) + ".bin";
  save(parts, target.parent_path() / file);
  return file;
}

}  // namespace

std::string file_name(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '_';
  return out.empty() ? "graph" : out;
}

context_settings read_context_settings(const session_entries& entries) {
  context_settings out;
  for (const auto& [key, value] : entries) {
    if (key == "ep.context_enable") out.enable = value == "1";
    if (key == "ep.context_embed_mode") out.embed = value == "1";
    if (key == "ep.context_file_path") out.file = value;
    if (key == "ep.context_node_name_prefix") out.prefix = value;
  }
  return out;
}

bool is_context(const onnx::node& n) { return n.op_type == "EPContext" && n.domain == "com.microsoft"; }
bool is_own_context(const onnx::node& n) { return is_context(n) && text_of(n, "source") == source; }

OrtNode* make_context(const host& ort, const context_settings& how, const std::string& model, const std::string& name,
                      const node_ports& ports, const executable& exe, const target& t) {
  saved_parts parts;
  parts.compiled = &exe;
  const std::string node = how.prefix + name;
  attribute_list attributes(ort);
  attributes.add("main_context", 1);
  attributes.add("embed_mode", how.embed);
  if (how.embed) {
    const std::vector<std::byte> bytes = save_to_bytes(parts);
    attributes.add("ep_cache_context", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else {
    attributes.add("ep_cache_context", write_beside(how, model, node, parts));
  }
  attributes.add("source", source);
  attributes.add("partition_name", name);
  attributes.add("ep_sdk_version", version_text);
  attributes.add("hardware_architecture", t.binary_format());
  attributes.add("onnx_model_filename", fs::path(model).filename().string());
  OrtNode* made = nullptr;
  const auto inputs = pointers(ports.inputs), outputs = pointers(ports.outputs);
  ort.call_editor(editor_api::create_node, "EPContext", "com.microsoft", node.c_str(), inputs.data(), inputs.size(),
                  outputs.data(), outputs.size(), attributes.all().data(), attributes.all().size(), &made);
  return made;
}

executable load_context(const onnx::node& n, const std::string& model, const target& t,
                        const compile_options& options) {
  expect(n, "ep_sdk_version", version_text);
  expect(n, "hardware_architecture", t.binary_format());
  const onnx::attribute* const embed = find(n, "embed_mode");
  const std::string content = text_of(n, "ep_cache_context");
  if (!embed || embed->integer != 0) {  // the attribute's default is 1
    saved_bytes from{buffer::allocate(content.size()), "EPContext node '" + n.name + "'"};
    std::memcpy(from.bytes.data(), content.data(), content.size());
    return load(from, t, options);
  }
  const fs::path file = content;
  if (content.empty() || file.is_absolute() || std::find(file.begin(), file.end(), fs::path("..")) != file.end())
    raise(errc::malformed,
          "ep_cache_context '" + content + "' of EPContext node '" + n.name + "' is no file in the model's folder");
  return load(fs::path(model).parent_path() / file, t, options);
}

std::string compatibility_info(const target& t) {
  return "kiln;" + std::string(version_text) + ";" + t.binary_format();
}

compatibility judge_compatibility(std::string_view info, const target& t) {
  if (!info.starts_with("kiln;")) return compatibility::not_applicable;
  return info == compatibility_info(t) ? compatibility::optimal : compatibility::unsupported;
}

}  // namespace kiln::onnxruntime
