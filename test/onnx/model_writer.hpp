#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Writes ONNX messages field by field, so that tests can make models, broken ones too, without protobuf.
namespace kiln::test {

class message {
 public:
  message& number(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  message& add(int field, const message& value) { return text(field, value.bytes_); }
  message& numbers(int field, const std::vector<std::int64_t>& values) {
    for (const std::int64_t v : values) number(field, v);
    return *this;
  }
  const std::string& str() const { return bytes_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_.data(), bytes_.size())); }

 private:
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes_.push_back(static_cast<char>(v | 0x80));
    bytes_.push_back(static_cast<char>(v));
  }
  std::string bytes_;
};

// attributes
inline message attribute(std::string_view name, int type) { return message().text(1, name).number(20, type); }
inline message attr(std::string_view name, float v) { return attribute(name, 1).real(2, v); }
inline message attr(std::string_view name, std::int64_t v) { return attribute(name, 2).number(3, v); }
inline message attr(std::string_view name, int v) { return attr(name, std::int64_t{v}); }
inline message attr(std::string_view name, const char* v) { return attribute(name, 3).text(4, v); }
inline message attr(std::string_view name, const std::vector<std::int64_t>& v) {
  return attribute(name, 7).numbers(8, v);
}
inline message tensor_attr(std::string_view name, const message& t) { return attribute(name, 4).add(5, t); }
inline message graph_attr(std::string_view name, const message& g) { return attribute(name, 5).add(6, g); }
inline message reference(std::string_view name, std::string_view of, int type) {
  return attribute(name, type).text(21, of);
}

using strings = std::vector<std::string>;

inline message node(std::string_view op, const strings& inputs, const strings& outputs,
                    const std::vector<message>& attributes = {}, std::string_view name = {},
                    std::string_view domain = {}) {
  message n;
  for (const auto& i : inputs) n.text(1, i);
  for (const auto& o : outputs) n.text(2, o);
  if (!name.empty()) n.text(3, name);
  n.text(4, op);
  for (const message& a : attributes) n.add(5, a);
  if (!domain.empty()) n.text(7, domain);
  return n;
}

/// A tensor with raw data; `type` is TensorProto.DataType.
template <class T>
message tensor(std::string_view name, int type, const std::vector<std::int64_t>& lens, const std::vector<T>& values) {
  message t;
  t.numbers(1, lens).number(2, type).text(8, name);
  return t.text(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}
inline message floats(std::string_view name, const std::vector<std::int64_t>& lens, const std::vector<float>& values) {
  return tensor(name, 1, lens, values);
}
inline message integers(std::string_view name, const std::vector<std::int64_t>& lens,
                        const std::vector<std::int64_t>& values) {
  return tensor(name, 7, lens, values);
}

/// A declared extent: a number, or a name.
struct dim {
  std::int64_t value = -1;
  std::string name;
  dim(std::int64_t v) : value(v) {}
  dim(int v) : value(v) {}
  dim(const char* n) : name(n) {}
};
inline message value_info(std::string_view name, int type, const std::vector<dim>& lens) {
  message shape;
  for (const dim& d : lens)
    shape.add(1, d.name.empty() && d.value < 0 ? message()
                 : d.name.empty()              ? message().number(1, d.value)
                                               : message().text(2, d.name));
  return message().text(1, name).add(2, message().add(1, message().number(1, type).add(2, shape)));
}
inline message value_info(std::string_view name) { return message().text(1, name); }

struct graph_parts {
  std::vector<message> nodes, initializers, inputs, outputs;
};
inline message graph(const graph_parts& p, std::string_view name = "g") {
  message g;
  for (const message& n : p.nodes) g.add(1, n);
  g.text(2, name);
  for (const message& t : p.initializers) g.add(5, t);
  for (const message& v : p.inputs) g.add(11, v);
  for (const message& v : p.outputs) g.add(12, v);
  return g;
}
inline message opset(std::int64_t version, std::string_view domain = "") {
  return message().text(1, domain).number(2, version);
}
inline message model(const message& g, const std::vector<message>& opsets = {opset(17)},
                     const std::vector<message>& functions = {}) {
  message m;
  m.number(1, 8).add(7, g);
  for (const message& o : opsets) m.add(8, o);
  for (const message& f : functions) m.add(25, f);
  return m;
}

}  // namespace kiln::test
