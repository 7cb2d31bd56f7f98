#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kiln/core/half.hpp"

namespace kiln::language::testing {

/// A tensor as a file has it.
struct file_tensor {
  std::string name, type;  ///< safetensors' word for the type
  std::vector<std::int64_t> extents;
  std::string bytes;
  std::uint32_t ggml_type = 0;
};

template <class T> std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <class T> void append(std::string& to, T v) { to.append(reinterpret_cast<const char*>(&v), sizeof v); }

/// Floats in one of the types of 16 bits or f32; `values` become what the file holds.
inline file_tensor tensor_of(std::string name, std::vector<std::int64_t> extents, std::vector<float>& values,
                             const std::string& type = "F32") {
  file_tensor t{std::move(name), type, std::move(extents), {}, 0};
  const auto narrow = [&]<class Number>(Number) {
    std::vector<Number> stored;
    for (float& v : values) {
      stored.push_back(static_cast<Number>(v));
      v = static_cast<float>(stored.back());
    }
    t.bytes = bytes_of(stored);
  };
  if (type == "F16")
    narrow(half()), t.ggml_type = 1;
  else if (type == "BF16")
    narrow(bfloat16()), t.ggml_type = 30;
  else
    t.bytes = bytes_of(values);
  return t;
}

inline std::string safetensors_file(const std::vector<file_tensor>& all) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const file_tensor& t : all) {
    header[t.name] = {
        {"dtype", t.type}, {"shape", t.extents}, {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
    data += t.bytes;
  }
  const std::string text = header.dump();
  std::string out;
  append(out, static_cast<std::uint64_t>(text.size()));
  return out + text + data;
}

/// Metadata of a GGUF file, and its tensors.
class gguf_writer {
 public:
  void text(const std::string& key, const std::string& v) { put_key(key, 8), put(meta_, v); }
  void whole(const std::string& key, std::uint32_t v) { put_key(key, 4), append(meta_, v); }
  void real(const std::string& key, float v) { put_key(key, 6), append(meta_, v); }
  void flag(const std::string& key, bool v) { put_key(key, 7), append(meta_, static_cast<std::uint8_t>(v)); }
  void texts(const std::string& key, const std::vector<std::string>& all) {
    put_list(key, 8, all.size());
    for (const std::string& t : all) put(meta_, t);
  }
  void reals(const std::string& key, const std::vector<float>& all) {
    put_list(key, 6, all.size());
    meta_ += bytes_of(all);
  }
  void wholes(const std::string& key, const std::vector<std::int32_t>& all) {
    put_list(key, 5, all.size());
    meta_ += bytes_of(all);
  }
  void tensor(const file_tensor& t) { tensors_.push_back(t); }
  std::string file() const { return file_of(meta_, values_, tensors_); }
  /// The same as so many files: the metadata in the first one, `split.*` and tensors in all.
  std::vector<std::string> parts(std::size_t count) const {
    std::vector<std::string> out;
    for (std::size_t k = 0, begin = 0; k < count; ++k) {
      gguf_writer part = k == 0 ? *this : gguf_writer();
      part.whole("split.no", static_cast<std::uint32_t>(k)),
          part.whole("split.count", static_cast<std::uint32_t>(count));
      part.whole("split.tensors.count", static_cast<std::uint32_t>(tensors_.size()));
      const std::size_t end = tensors_.size() * (k + 1) / count;
      part.tensors_ = {tensors_.begin() + static_cast<std::ptrdiff_t>(begin),
                       tensors_.begin() + static_cast<std::ptrdiff_t>(end)};
      out.push_back(part.file());
      begin = end;
    }
    return out;
  }

 private:
  static std::string file_of(const std::string& meta, std::uint64_t values, const std::vector<file_tensor>& tensors) {
    std::string infos, data;
    for (const file_tensor& t : tensors) {
      put(infos, t.name);
      append(infos, static_cast<std::uint32_t>(t.extents.size()));
      for (std::size_t d = t.extents.size(); d-- > 0;) append(infos, static_cast<std::uint64_t>(t.extents[d]));
      append(infos, t.ggml_type);
      data.resize((data.size() + 31) / 32 * 32, '\0');
      append(infos, static_cast<std::uint64_t>(data.size()));
      data += t.bytes;
    }
    std::string out = "GGUF";
    append(out, std::uint32_t{3});
    append(out, static_cast<std::uint64_t>(tensors.size())), append(out, values);
    out += meta + infos;
    out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data;
  }
  static void put(std::string& to, const std::string& text) {
    append(to, static_cast<std::uint64_t>(text.size()));
    to += text;
  }
  void put_key(const std::string& key, std::uint32_t type) {
    put(meta_, key);
    append(meta_, type);
    ++values_;
  }
  void put_list(const std::string& key, std::uint32_t type, std::size_t n) {
    put_key(key, 9);
    append(meta_, type);
    append(meta_, static_cast<std::uint64_t>(n));
  }
  std::uint64_t values_ = 0;
  std::string meta_;
  std::vector<file_tensor> tensors_;
};

}  // namespace kiln::language::testing
