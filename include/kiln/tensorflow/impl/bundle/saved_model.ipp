#include "kiln/tensorflow/impl/bundle/saved_model.hpp"

#include <algorithm>

#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/impl/file/text_format.hpp"

// Messages of saved_model.proto and meta_graph.proto.
namespace kiln::tensorflow {

namespace {

named_value read_value(bytes_view message, const std::string& where) {
  auto [name, info] = read_entry(message, where);
  named_value out;
  const std::string at = where + ", tensor '" + name + "'";
  out.declared = tensor_named(name);
  out.name = std::move(name);
  bool has_parts = false;  // coo_sparse, composite_tensor
  each_field(info, at, [&](const wire_field& f) {
    has_parts = has_parts || f.number == 4 || f.number == 5;
    if (f.number == 1) out.value = f.text();
    if (f.number == 2) out.declared.type = to_element(f.value);
    if (f.number != 3) return;
    const tensor_shape s = read_shape(f.content, at);
    out.declared.has_rank = s.has_rank;
    for (const std::int64_t d : s.lens) out.declared.dims.push_back({d < 0 ? -1 : d, {}});
  });
  if (out.value.empty() && !has_parts) refuse(at, "it is no tensor of the graph");
  return out;
}

signature read_signature(bytes_view message) {
  auto [name, definition] = read_entry(message, "the signatures");
  signature out;
  const std::string where = "signature '" + name + "'";
  out.name = std::move(name);
  each_field(definition, where, [&](const wire_field& f) {
    if (f.number == 1) out.inputs.push_back(read_value(f.content, where));
    if (f.number == 2) out.outputs.push_back(read_value(f.content, where));
  });
  // a map of protobuf has no order
  const auto by_name = [](const named_value& a, const named_value& b) { return a.name < b.name; };
  std::sort(out.inputs.begin(), out.inputs.end(), by_name);
  std::sort(out.outputs.begin(), out.outputs.end(), by_name);
  return out;
}

std::vector<std::string> tags_of(bytes_view meta_graph) {
  std::vector<std::string> out;
  each_field(meta_graph, "a graph of the model", [&](const wire_field& f) {
    if (f.number != 1) return;
    each_field(f.content, "a graph of the model", [&](const wire_field& i) {
      if (i.number == 4) out.push_back(i.text());
    });
  });
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "'" : ", '") + n + "'";
  return out.empty() ? "none" : out;
}

}  // namespace

saved_model read_saved_model(const buffer& given, const std::string& tag) {
  const buffer file = binary_form(given, text_message::saved_model);
  std::vector<bytes_view> graphs;
  each_field({file.data(), file.size()}, "the model", [&](const wire_field& f) {
    if (f.number == 2 && f.encoding == wire_encoding::delimited) graphs.push_back(f.content);
  });
  if (graphs.empty()) refuse("the model", "it has no graph");
  std::vector<std::string> all;
  const auto find = [&](const std::string& wanted) -> const bytes_view* {
    for (const bytes_view& g : graphs) {
      const auto tags = tags_of(g);
      all.insert(all.end(), tags.begin(), tags.end());
      if (std::find(tags.begin(), tags.end(), wanted) != tags.end()) return &g;
    }
    return nullptr;
  };
  const bytes_view* chosen = find(tag.empty() ? "serve" : tag);
  if (!chosen && tag.empty() && graphs.size() == 1) chosen = &graphs[0];
  if (!chosen)
    raise(errc::not_found,
          "the model has no graph with tag '" + (tag.empty() ? "serve" : tag) + "', but with " + listed(all));
  saved_model out;
  bool has_graph = false;
  each_field(*chosen, "the model", [&](const wire_field& f) {
    if (f.number == 2 && f.encoding == wire_encoding::delimited) {
      out.graph = read_graph_def(f.content, file);
      has_graph = true;
    }
    if (f.number == 5) out.signatures.push_back(read_signature(f.content));
  });
  if (!has_graph) refuse("the model", "its graph is missing");
  return out;
}

void check_dense(const named_value& v, const signature& s) {
  if (v.value.empty())
    raise(errc::unsupported, "signature '" + s.name + "', tensor '" + v.name + "': is sparse, or of several tensors");
}

const signature& find_signature(const saved_model& m, const std::string& name) {
  std::vector<std::string> names;
  std::vector<const signature*> runnable;
  for (const signature& s : m.signatures) {
    if (s.name == (name.empty() ? "serving_default" : name)) return s;
    names.push_back(s.name);
    if (!s.outputs.empty() && !s.name.starts_with("__saved_model")) runnable.push_back(&s);
  }
  if (name.empty() && runnable.size() == 1) return *runnable[0];
  if (name.empty()) raise(errc::not_found, "which signature to import is not said; the model has " + listed(names));
  raise(errc::not_found, "the model has no signature '" + name + "', but " + listed(names));
}

}  // namespace kiln::tensorflow
