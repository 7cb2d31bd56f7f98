#pragma once
#include <filesystem>
#include <fstream>
#include <map>

#include "kiln/core/wire_format.hpp"
#include "kiln/tensorflow/impl/bundle/crc32c.hpp"
#include "kiln/tensorflow/impl/file/text_format.hpp"
#include "support/temporary_folder.hpp"
#include "tensorflow/graph_text.hpp"

// Folders of SavedModels, written byte by byte.
namespace kiln::tensorflow {

template <class T> std::string bytes_of_numbers(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}
template <class T> void append_bytes(std::string& to, T v) { to.append(reinterpret_cast<const char*>(&v), sizeof v); }

/// A table of LevelDB's form: blocks of a few entries whose keys share what they can, plain or compressed as literals.
inline std::string table_of(const std::map<std::string, std::string>& entries, bool compressed = false,
                            std::size_t per_block = 3) {
  std::string file;
  const auto add_block = [&](std::string block) {
    std::string handle;
    char kind = 0;
    if (compressed) {
      std::string packed;
      append_varint(packed, block.size());
      for (std::size_t at = 0; at < block.size(); at += 60) {
        const std::string part = block.substr(at, 60);
        packed += static_cast<char>((part.size() - 1) << 2);
        packed += part;
      }
      block = packed;
      kind = 1;
    }
    append_varint(handle, file.size());
    append_varint(handle, block.size());
    block += kind;
    append_bytes(block, masked(crc32c(std::as_bytes(std::span(block)))));
    file += block;
    return handle;
  };
  const auto block_of = [](const std::vector<std::pair<std::string, std::string>>& list) {
    std::string out, last;
    std::vector<std::uint32_t> restarts;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& [key, value] = list[i];
      std::size_t shared = 0;
      if (i % 2 == 0)
        restarts.push_back(static_cast<std::uint32_t>(out.size()));
      else
        while (shared < std::min(last.size(), key.size()) && last[shared] == key[shared]) ++shared;
      append_varint(out, shared);
      append_varint(out, key.size() - shared);
      append_varint(out, value.size());
      out += key.substr(shared) + value;
      last = key;
    }
    if (restarts.empty()) restarts.push_back(0);
    return out + bytes_of_numbers(restarts) +
           bytes_of_numbers<std::uint32_t>({static_cast<std::uint32_t>(restarts.size())});
  };
  std::vector<std::pair<std::string, std::string>> index, block;
  const auto flush = [&] {
    if (block.empty()) return;
    const std::string last = block.back().first;
    index.emplace_back(last, add_block(block_of(block)));
    block.clear();
  };
  for (const auto& e : entries) {
    block.push_back(e);
    if (block.size() == per_block) flush();
  }
  flush();
  std::string footer = add_block(block_of({}));
  footer += add_block(block_of(index));
  footer.resize(40, '\0');
  append_bytes(footer, std::uint64_t{0xdb4775248b80fb57});
  return file + footer;
}

/// A checkpoint in two files of data.
struct bundle_writer {
  std::map<std::string, std::string> entries;
  std::string data[2];

  bundle_writer() {
    std::string header;
    append_field(header, 1, std::uint64_t{2});
    entries[""] = header;
  }
  static std::string entry_of(std::uint64_t type, const std::vector<std::int64_t>& lens) {
    std::string shape, e;
    for (const std::int64_t n : lens) {
      std::string dim;
      append_field(dim, 1, static_cast<std::uint64_t>(n));
      append_field(shape, 2, dim);
    }
    append_field(e, 1, type);
    append_field(e, 2, shape);
    return e;
  }
  void add(const std::string& name, std::uint64_t type, const std::vector<std::int64_t>& lens, const std::string& bytes,
           std::size_t shard = 0) {
    std::string e = entry_of(type, lens);
    append_field(e, 3, std::uint64_t{shard});
    append_field(e, 4, std::uint64_t{data[shard].size()});
    append_field(e, 5, std::uint64_t{bytes.size()});
    append_varint(e, 6 << 3 | 5);
    append_bytes(e, masked(crc32c(std::as_bytes(std::span(bytes)))));
    data[shard] += bytes;
    entries[name] = e;
  }
  void add(const std::string& name, const std::vector<std::int64_t>& lens, const std::vector<float>& v,
           std::size_t shard = 0) {
    add(name, 1, lens, bytes_of_numbers(v), shard);
  }
  /// A text of less than 4 GiB as a scalar: its length, a checksum of that in 4 bytes, and itself; the checksum of all
  /// has the length in 4 bytes, too.
  void add_text(const std::string& name, const std::string& text) {
    std::string bytes, exact;
    append_bytes(exact, static_cast<std::uint32_t>(text.size()));
    append_varint(bytes, text.size());
    append_bytes(bytes, masked(crc32c(std::as_bytes(std::span(exact)))));
    append_bytes(exact, masked(crc32c(std::as_bytes(std::span(exact)))));
    exact += text;
    add(name, 7, {}, bytes + text);
    const std::uint32_t checksum = masked(crc32c(std::as_bytes(std::span(exact))));
    entries[name].replace(entries[name].size() - 4, 4, reinterpret_cast<const char*>(&checksum), 4);
  }
  void write(const std::filesystem::path& folder, bool compressed = false) const {
    std::filesystem::create_directories(folder / "variables");
    std::ofstream(folder / "variables/variables.index", std::ios::binary) << table_of(entries, compressed);
    for (const int k : {0, 1})
      std::ofstream(folder / ("variables/variables.data-0000" + std::to_string(k) + "-of-00002"), std::ios::binary)
          << data[k];
  }
};

/// A tensor of a signature.
inline std::string tensor_info(const std::string& list, const std::string& name, const std::string& value,
                               const std::string& extents = "") {
  std::string dims, word;
  for (const char c : extents + " ")
    if (c != ' ')
      word += c;
    else if (!word.empty())
      dims += "dim { size: " + word + " } ", word.clear();
  return list + " { key: '" + name + "' value { name: '" + value + "' dtype: DT_FLOAT tensor_shape { " + dims +
         "} } } ";
}
inline std::string signature_text(const std::string& name, const std::string& tensors) {
  return "signature_def { key: '" + name + "' value { " + tensors + " method_name: 'tensorflow/serving/predict' } }\n";
}
inline std::string meta_graph(const std::string& tag, const std::string& graph, const std::string& signatures) {
  return "meta_graphs {\n meta_info_def { tags: '" + tag + "' }\n graph_def {\n" + graph + "}\n" + signatures + "}\n";
}
inline std::string saved_model_text(const std::string& graphs) { return "saved_model_schema_version: 1\n" + graphs; }
inline std::string saved_model_bytes(const std::string& graphs) {
  return binary_of_text(saved_model_text(graphs), text_message::saved_model);
}

/// y = x w + b, of x[n, 2] and b[3], as TensorFlow 2 saves it: functions read the variables, another one restores them.
inline std::string dense_graph() {
  const std::string captured = attribute("dtype", "type: DT_FLOAT");
  const auto handle = [](const std::string& name) {
    return node(name, "VarHandleOp", {},
                attribute("shared_name", "s: '" + name + "'") + attribute("dtype", "type: DT_FLOAT"));
  };
  const std::string strings = "value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: ";
  const auto text_constant = [&](const std::string& name, const std::string& values) {
    return node(name, "Const", {}, "attr { key: 'value' " + strings + values + " } } }");
  };
  const std::string functions =
      function("serve", {"x", "k", "b"}, {{"output_0", "sum:z:0"}},
               node("read", "ReadVariableOp", {"k"}) + node("bias", "ReadVariableOp", {"b"}) +
                   node("product", "MatMul", {"x", "read:value:0"}) +
                   node("sum", "BiasAdd", {"product:product:0", "bias:value:0"})) +
      function(
          "restore", {"file", "k", "b"}, {{"done", "file"}},
          text_constant(
              "names",
              "'layer-0/kernel/.ATTRIBUTES/VARIABLE_VALUE' string_val: 'layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE'") +
              text_constant("parts", "'' string_val: ''") +
              node("RestoreV2", "RestoreV2", {"file", "names:output:0", "parts:output:0"}) +
              node("Identity", "Identity", {"RestoreV2:tensors:0"}) +
              node("Identity_1", "Identity", {"RestoreV2:tensors:1"}) +
              node("assign", "AssignVariableOp", {"k", "Identity:output:0"}) +
              node("assign_1", "AssignVariableOp", {"b", "Identity_1:output:0"}));
  return placeholder("serving_default_x", "-1 2") + placeholder("saver_filename", "", "DT_STRING") +
         handle("dense/kernel") + handle("dense/bias") +
         node("StatefulPartitionedCall", "StatefulPartitionedCall", {"serving_default_x", "dense/kernel", "dense/bias"},
              function_attribute("f", "serve")) +
         node("StatefulPartitionedCall_1", "StatefulPartitionedCall", {"saver_filename", "dense/kernel", "dense/bias"},
              function_attribute("f", "restore")) +
         library(functions);
}
inline std::string dense_signature(const std::string& name = "serving_default") {
  return signature_text(name, tensor_info("inputs", "x", "serving_default_x:0", "-1 2") +
                                  tensor_info("outputs", "output_0", "StatefulPartitionedCall:0", "-1 3"));
}
inline bundle_writer dense_variables() {
  bundle_writer w;
  w.add("layer-0/kernel/.ATTRIBUTES/VARIABLE_VALUE", {2, 3}, {1, 2, 3, 4, 5, 6});
  w.add("layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE", {3}, {10, 20, 30}, 1);
  w.add("save_counter/.ATTRIBUTES/VARIABLE_VALUE", 9, {}, bytes_of_numbers<std::int64_t>({1}));
  w.add("optimizer/m", {1}, {0});
  return w;
}

}  // namespace kiln::tensorflow
