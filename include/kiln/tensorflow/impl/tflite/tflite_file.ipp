#include "kiln/tensorflow/impl/tflite/tflite_file.hpp"

#include <algorithm>

#include "kiln/onnx/import.hpp"
#include "kiln/tensorflow/impl/tflite/graph_reader.hpp"

// A whole TFLite file: verified, a subgraph of it chosen, metadata.
namespace kiln::tensorflow {

namespace {

constexpr std::size_t identifier_at = 4;

// Files of more than 2 GiB keep constants after the flatbuffer.
const parts::Model& verified(const buffer& file) {
  if (!begins_as_tflite({file.data(), file.size()})) raise(errc::malformed, "not a TFLite file: TFL3 is missing");
  const std::size_t size = std::min<std::size_t>(file.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier check(reinterpret_cast<const std::uint8_t*>(file.data()), size, 64, 1u << 24);
  if (!parts::VerifyModelBuffer(check))
    raise(errc::malformed, "a damaged TFLite file: flatbuffers' verifier refuses it");
  const parts::Model& model = *parts::GetModel(file.data());
  if (model.version() != 3)
    raise(errc::unsupported, "a TFLite file of version " + std::to_string(model.version()) + "; kiln reads version 3");
  return model;
}

const parts::SignatureDef* find_signature(file_reading& all, const std::string& wanted) {
  const parts::Model& model = all.model;
  if (wanted.empty()) return nullptr;
  std::string known;
  for (std::size_t i = 0; i < count_of(model.signature_defs()); ++i) {
    const parts::SignatureDef* const s = model.signature_defs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (text_of(s->signature_key()) == wanted) return s;
    all.charge(8 + text_of(s->signature_key()).size());
    known += (known.empty() ? "'" : ", '") + text_of(s->signature_key()) + "'";
  }
  raise(errc::not_found, "the file has no signature '" + wanted + "', it has " + (known.empty() ? "none" : known));
}

// The reader of the subgraph that is wanted, its values named.
graph_reader reader_of(file_reading& all, const std::string& signature) {
  const parts::SignatureDef* const s = find_signature(all, signature);
  graph_reader out(all, s ? s->subgraph_index() : 0, "", {}, 0);
  if (!s) return out;
  const auto each_name = [&](const auto* list, auto&& tell) {
    for (std::size_t i = 0; i < count_of(list); ++i) {
      const parts::TensorMap* const m = list->Get(static_cast<flatbuffers::uoffset_t>(i));
      std::string name = text_of(m->name());
      all.charge(16 + name.size());
      if (!name.empty()) tell(m->tensor_index(), std::move(name));
    }
  };
  each_name(s->inputs(), [&](std::size_t tensor, std::string name) { out.rename(tensor, std::move(name)); });
  each_name(s->outputs(), [&](std::size_t tensor, std::string name) { out.name_output(tensor, std::move(name)); });
  return out;
}

// What a file says of itself: its description, its signatures, short texts among its metadata.
std::vector<std::pair<std::string, std::string>> metadata_of(file_reading& all) {
  const parts::Model& model = all.model;
  std::vector<std::pair<std::string, std::string>> out;
  if (const std::string d = text_of(model.description()); !d.empty()) out.emplace_back("description", d);
  const auto listed = [&](const auto* maps) {
    std::string names;
    for (std::size_t i = 0; i < count_of(maps); ++i) {
      const std::string name = text_of(maps->Get(static_cast<flatbuffers::uoffset_t>(i))->name());
      all.charge(2 + name.size());
      names += (i ? ", " : "") + name;
    }
    return names;
  };
  for (std::size_t i = 0; i < count_of(model.signature_defs()); ++i) {
    const parts::SignatureDef* const s = model.signature_defs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    out.emplace_back("signature '" + text_of(s->signature_key()) + "'",
                     listed(s->inputs()) + " -> " + listed(s->outputs()));
    all.charge(out.back().first.size());
  }
  for (std::size_t i = 0; i < count_of(model.metadata()); ++i) {
    const parts::Metadata* const m = model.metadata()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (m->buffer() >= count_of(model.buffers())) continue;
    const auto* const bytes = model.buffers()->Get(m->buffer())->data();
    all.charge(count_of(bytes) + (m->name() ? m->name()->size() : 0));
    std::string text(bytes ? reinterpret_cast<const char*>(bytes->data()) : "", count_of(bytes));
    while (!text.empty() && text.back() == '\0') text.pop_back();
    const bool is_text =
        text.size() < 256 && std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
    out.emplace_back(text_of(m->name()), is_text ? text : std::to_string(count_of(bytes)) + " bytes");
  }
  return out;
}

}  // namespace

bool begins_as_tflite(std::span<const std::byte> bytes) {
  static constexpr std::string_view identifier = "TFL3";
  if (bytes.size() < identifier_at + identifier.size()) return false;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + identifier_at, identifier.size()) == identifier;
}

tflite_file read_tflite(const buffer& file, const std::string& signature, std::size_t max_nodes) {
  file_reading all{file, verified(file), 16 * max_nodes};
  tflite_file out;
  out.model.main = reader_of(all, signature).read();
  out.model.versions = {{"", onnx::newest_opset}, {std::string(tflite_domain), 1}};
  out.model.producer = "TensorFlow Lite";
  out.model.metadata = metadata_of(all);
  out.remarks = std::move(all.remarks);
  return out;
}

std::vector<onnx::value_info> tflite_inputs(const buffer& file, const std::string& signature) {
  file_reading all{file, verified(file), 0};
  return reader_of(all, signature).read_inputs();
}

}  // namespace kiln::tensorflow
