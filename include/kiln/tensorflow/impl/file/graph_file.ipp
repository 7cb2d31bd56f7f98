#include "kiln/tensorflow/impl/file/graph_file.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "kiln/core/error.hpp"
#include "kiln/core/mapped_file.hpp"
#include "kiln/core/wire_format.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/tensorflow/impl/file/text_format.hpp"
#include "kiln/tensorflow/import.hpp"

namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind, onnx::element;

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  raise(errc::malformed, where + ": " + why);
}

// The fields of a message; what does not belong to one is an error.
template <class Each> void each_field(bytes_view message, const std::string& where, Each&& each) {
  wire_reader from(message);
  for (wire_field f; from.next(f);) each(f);
  if (!from.ok()) refuse(where, "the bytes are no message");
}
// The numbers of a field that is packed or not.
template <class Each> void each_number(const wire_field& f, const std::string& where, Each&& each) {
  if (f.encoding != wire_encoding::delimited) return each(f.value);
  wire_reader packed(f.content);
  for (std::uint64_t n = 0; packed.next(n);) each(n);
  if (!packed.ok()) refuse(where, "a packed list ends too soon");
}
template <class T, class Each> void each_real(const wire_field& f, const std::string& where, Each&& each) {
  if (f.encoding == wire_encoding::varint || f.content.size() % sizeof(T)) refuse(where, "a list of floats is damaged");
  for (std::size_t i = 0; i < f.content.size(); i += sizeof(T)) {
    T v;
    std::memcpy(&v, f.content.data() + i, sizeof v);
    each(v);
  }
}

struct tensor_shape {
  std::vector<std::int64_t> lens;
  bool has_rank = true;
};

tensor_shape read_shape(bytes_view message, const std::string& where) {
  tensor_shape out;
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 3) out.has_rank = f.value == 0;
    if (f.number != 2) return;
    std::int64_t size = 0;
    each_field(f.content, where, [&](const wire_field& d) {
      if (d.number == 1) size = static_cast<std::int64_t>(d.value);
    });
    out.lens.push_back(size);
  });
  return out;
}

// The listed values of a tensor as bytes of its type; the last one stands for all that follow.
class listed_values {
 public:
  explicit listed_values(std::size_t width) : width_(width) {}
  void add(const void* from) { bytes_.append(static_cast<const char*>(from), width_); }
  std::size_t count() const { return bytes_.size() / width_; }
  buffer filled(std::size_t count) const {
    buffer out = buffer::allocate(count * width_);
    const std::size_t given = std::min(bytes_.size(), count * width_);
    std::memcpy(out.data(), bytes_.data(), given);
    const std::string zero(width_, '\0');
    const char* const last = given ? bytes_.data() + given - width_ : zero.data();
    for (std::size_t at = given; at < count * width_; at += width_) std::memcpy(out.data() + at, last, width_);
    return out;
  }

 private:
  std::size_t width_;
  std::string bytes_;
};

constexpr std::int64_t most_bytes = std::int64_t{1} << 31;

onnx::tensor read_tensor(bytes_view message, const std::string& where, const buffer& file) {
  onnx::tensor out;
  std::uint64_t type = 0;
  tensor_shape extents;
  bytes_view content;
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 1) type = f.value;
    if (f.number == 2) extents = read_shape(f.content, where);
    if (f.number == 4) content = f.content;
  });
  out.type = to_element(type);
  const auto held = to_dtype(out.type);
  if (!held || out.type == element::string) {
    out.fault = "is of " + type_name(type) + ", which constants of a program do not hold";
    return out;
  }
  if (extents.lens.size() > max_rank) {
    out.fault = "has " + std::to_string(extents.lens.size()) + " dims; kiln's tensors have at most 8";
    return out;
  }
  shape s{*held, {}};
  const auto width = static_cast<std::int64_t>(size_of(*held));
  std::int64_t count = 1;
  for (const std::int64_t n : extents.lens) {
    if (n < 0) refuse(where, "an extent of a constant is " + std::to_string(n));
    if (n > 0 && count > (std::int64_t{1} << 40) / n) raise(errc::limit, where + ": a constant has too many elements");
    count *= n;
    s.lens.push_back(n);
  }
  if (!content.empty()) {
    if (static_cast<std::int64_t>(content.size()) != count * width)
      refuse(where, "tensor_content has " + std::to_string(content.size()) + " bytes, the shape " +
                        std::to_string(count * width));
    const auto offset = static_cast<std::size_t>(content.data() - file.data());
    out.value = onnx::literal_of_raw(s, buffer_part(file, offset, content.size()));
    return out;
  }
  if (count * width > most_bytes)
    raise(errc::limit, where + ": one value stands for a constant of " + std::to_string(count * width) + " bytes");
  listed_values values(static_cast<std::size_t>(width));
  each_field(message, where, [&](const wire_field& f) {
    const auto integer = [&](std::uint64_t n) { values.add(&n); };  // little-endian: the low bytes are the value
    switch (f.number) {
      case 5:
        if (*held == dtype::f32) each_real<float>(f, where, [&](float v) { values.add(&v); });
        break;
      case 6:
        if (*held == dtype::f64) each_real<double>(f, where, [&](double v) { values.add(&v); });
        break;
      case 9:
        if (*held == dtype::c64) {
          small_vector<float> parts;
          each_real<float>(f, where, [&](float v) { parts.push_back(v); });
          for (std::size_t i = 0; i + 1 < parts.size(); i += 2) values.add(&parts[i]);
        }
        break;
      case 7:
      case 10:
      case 11:
      case 13:
      case 16:
      case 17:
        if (!is_complex(*held) && (!is_float(*held) || width == 2)) each_number(f, where, integer);
        break;
      default: break;
    }
  });
  if (static_cast<std::int64_t>(values.count()) > count)
    refuse(where, std::to_string(values.count()) + " values for a constant of " + std::to_string(count) + " elements");
  out.value = literal(s, values.filled(static_cast<std::size_t>(count)));
  return out;
}

std::int64_t element_number(std::uint64_t type) { return static_cast<std::int64_t>(to_element(type)); }

void read_list(attribute& a, bytes_view message, const std::string& where) {
  a.kind = attribute_kind::integers;  // what an empty list is taken for
  each_field(message, where, [&](const wire_field& f) {
    switch (f.number) {
      case 2:
        a.kind = attribute_kind::texts;
        a.texts.push_back(f.text());
        break;
      case 3:
      case 5:
        each_number(f, where, [&](std::uint64_t n) { a.integers.push_back(static_cast<std::int64_t>(n)); });
        break;
      case 4:
        a.kind = attribute_kind::reals;
        each_real<float>(f, where, [&](float v) { a.reals.push_back(v); });
        break;
      case 6: each_number(f, where, [&](std::uint64_t n) { a.integers.push_back(element_number(n)); }); break;
      default: a.kind = attribute_kind::other;
    }
  });
}

attribute read_attribute(std::string name, bytes_view message, const std::string& where, const buffer& file) {
  attribute a;
  a.name = std::move(name);
  a.kind = attribute_kind::other;
  each_field(message, where, [&](const wire_field& f) {
    switch (f.number) {
      case 1: read_list(a, f.content, where); break;
      case 2:
        a.kind = attribute_kind::text;
        a.text = f.text();
        break;
      case 3:
      case 5:
        a.kind = attribute_kind::integer;
        a.integer = static_cast<std::int64_t>(f.value);
        break;
      case 4:
        a.kind = attribute_kind::real;
        each_real<float>(f, where, [&](float v) { a.real = v; });
        break;
      case 6:
        a.kind = attribute_kind::integer;
        a.integer = element_number(f.value);
        a.text = type_name(f.value);
        break;
      case 7: {
        const tensor_shape s = read_shape(f.content, where);
        a.kind = s.has_rank ? attribute_kind::integers : attribute_kind::other;
        a.integers = s.lens;
        break;
      }
      case 8:
        a.kind = attribute_kind::tensor;
        a.tensors = {read_tensor(f.content, where, file)};
        break;
      default: break;
    }
  });
  return a;
}

onnx::node read_node(bytes_view message, std::size_t index, const buffer& file) {
  onnx::node n;
  n.domain = domain;
  std::string where = "node " + std::to_string(index);
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 1) n.name = f.text();
    if (f.number == 2) n.op_type = f.text();
    if (f.number == 3) n.inputs.push_back(f.text());
  });
  if (n.name.empty() || n.op_type.empty()) refuse(where, "a node has a name and an operator");
  where = "node '" + n.name + "' (" + n.op_type + ")";
  each_field(message, where, [&](const wire_field& f) {
    if (f.number != 5) return;
    std::string key;
    bytes_view held;
    each_field(f.content, where, [&](const wire_field& e) {
      if (e.number == 1) key = e.text();
      if (e.number == 2) held = e.content;
    });
    n.attributes.push_back(read_attribute(std::move(key), held, where + ", attribute", file));
  });
  return n;
}

const attribute* find(const onnx::node& n, std::string_view name) {
  for (const attribute& a : n.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

onnx::value_info input_of(const onnx::node& n) {
  onnx::value_info v;
  v.name = n.name;
  v.kind = onnx::value_kind::tensor;
  const attribute* const type = find(n, "dtype");
  if (!type || type->kind != attribute_kind::integer)
    refuse("node '" + n.name + "'", "a placeholder has attribute 'dtype'");
  v.type = static_cast<element>(type->integer);
  if (const attribute* const s = find(n, "shape"); s && s->kind == attribute_kind::integers) {
    v.has_rank = true;
    for (const std::int64_t d : s->integers) v.dims.push_back({d < 0 ? -1 : d, {}});
  }
  return v;
}

// What checks and control flow leave in a frozen graph, and computes nothing.
bool computes_nothing(const onnx::node& n) {
  for (const std::string_view part : {"NoOp", "Assert"})
    if (n.op_type.find(part) != std::string::npos || n.name.find(part) != std::string::npos) return true;
  return false;
}

// "n" and 0 of "n" or "n:0"; a name of a node may have no colon.
std::pair<std::string_view, std::size_t> parts_of(std::string_view input) {
  const std::size_t colon = input.rfind(':');
  if (colon == std::string_view::npos) return {input, 0};
  std::size_t k = 0;
  for (const char c : input.substr(colon + 1)) {
    if (c < '0' || c > '9' || k > 100000) return {input, 0};
    k = k * 10 + static_cast<std::size_t>(c - '0');
  }
  return {input.substr(0, colon), k};
}

}  // namespace

std::string output_name(std::string_view node, std::size_t k) {
  return k ? std::string(node) + ":" + std::to_string(k) : std::string(node);
}

bool begins_as_graph(std::span<const std::byte> bytes) {
  const auto head = bytes.first(std::min<std::size_t>(bytes.size(), 1024));
  if (head.empty()) return false;
  const auto is_control = [](std::byte b) {
    return b < std::byte(' ') && b != std::byte('\n') && b != std::byte('\t') && b != std::byte('\r');
  };
  if (std::none_of(head.begin(), head.end(), is_control)) {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const std::size_t first = text.find("node");
    return first != std::string_view::npos && text.find_first_of("{<", first) != std::string_view::npos;
  }
  wire_reader from(bytes);
  wire_field f;
  // a GraphDef begins with a node, and a node with its name or its operator
  if (!from.next(f) || f.number != 1 || f.encoding != wire_encoding::delimited) return false;
  wire_reader node(f.content);
  bool has_name = false, has_operator = false;
  for (wire_field n; node.next(n);) {
    has_name = has_name || (n.number == 1 && n.encoding == wire_encoding::delimited);
    has_operator = has_operator || (n.number == 2 && n.encoding == wire_encoding::delimited);
  }
  return node.ok() && has_name && has_operator;
}

graph_file read_graph(const buffer& given) {
  buffer file = given;
  bytes_view bytes(file.data(), file.size());
  const auto is_control = [](std::byte b) {
    return b < std::byte(' ') && b != std::byte('\n') && b != std::byte('\t') && b != std::byte('\r');
  };
  const auto head = bytes.first(std::min<std::size_t>(bytes.size(), 1024));
  if (bytes.empty()) raise(errc::malformed, "the graph is empty");
  if (std::none_of(head.begin(), head.end(), is_control)) {
    const std::string binary = binary_of_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    file = buffer::allocate(binary.size());
    std::memcpy(file.data(), binary.data(), binary.size());
    bytes = {file.data(), file.size()};
  }
  graph_file out;
  std::unordered_map<std::string, std::size_t> outputs;  // how many each node has, as far as others read them
  std::vector<onnx::node> nodes;
  each_field(bytes, "the graph", [&](const wire_field& f) {
    if (f.number == 1 && f.encoding == wire_encoding::delimited)
      nodes.push_back(read_node(f.content, nodes.size(), file));
  });
  for (onnx::node& n : nodes) {
    if (computes_nothing(n)) continue;
    if (!outputs.emplace(n.name, 1).second) refuse("node '" + n.name + "'", "another node has this name");
    std::erase_if(n.inputs, [](const std::string& name) { return name.starts_with('^'); });
  }
  std::erase_if(nodes, computes_nothing);
  for (onnx::node& n : nodes)
    for (std::string& input : n.inputs) {
      const auto [name, k] = parts_of(input);
      const auto found = outputs.find(std::string(name));
      if (found == outputs.end())
        refuse("node '" + n.name + "' (" + n.op_type + ")", "no node gives its input '" + input + "'");
      found->second = std::max(found->second, k + 1);
      input = output_name(name, k);
    }
  for (onnx::node& n : nodes) {
    if (n.op_type == "Placeholder") {
      out.graph.inputs.push_back(input_of(n));
    } else if (n.op_type == "Const") {
      const attribute* const v = find(n, "value");
      if (!v || v->tensors.size() != 1) refuse("node '" + n.name + "'", "a constant has attribute 'value'");
      out.graph.initializers.push_back(v->tensors[0]);
      out.graph.initializers.back().name = n.name;
    } else {
      for (std::size_t k = 0; k < outputs[n.name]; ++k) n.outputs.push_back(output_name(n.name, k));
      out.graph.nodes.push_back(std::move(n));
    }
  }
  return out;
}

}  // namespace kiln::tensorflow
