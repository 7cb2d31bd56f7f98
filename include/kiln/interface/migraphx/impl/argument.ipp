#include "kiln/interface/migraphx/argument.hpp"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "kiln/core/mapped_file.hpp"

namespace kiln::migraphx {

namespace {

template <class F> argument filled(const shape& s, F&& next) {
  if (s.type() == type_t::tuple_type) {
    std::vector<argument> parts;
    for (const shape& part : s.parts()) parts.push_back(filled(part, next));
    return argument::tuple(std::move(parts));
  }
  argument out(s);
  const dtype t = dtype_of_type(s.type());
  for (std::size_t i = 0; i < s.elements(); ++i) {
    const double v = next(t);
    encode(t, &v, reinterpret_cast<std::byte*>(out.data()) + s.index(i) * size_of(t), 1);
  }
  return out;
}

bool equal_bytes(const argument& a, const argument& b) {
  const shape &s = a.get_shape(), &r = b.get_shape();
  if (s.dynamic()) return std::memcmp(a.data(), b.data(), s.bytes()) == 0;
  const std::size_t n = s.type_size();
  for (std::size_t i = 0; i < s.elements(); ++i)
    if (std::memcmp(a.data() + s.index(i) * n, b.data() + r.index(i) * n, n) != 0) return false;
  return true;
}

nlohmann::json shape_value(const shape& s) {
  nlohmann::json out{{"type", std::string(to_string(s.type()))}, {"sub_shapes", nlohmann::json::array()}};
  for (const shape& part : s.parts()) out["sub_shapes"].push_back(shape_value(part));
  out["lens"] = s.lens();
  out["strides"] = s.strides();
  out["dynamic_dimensions"] = nlohmann::json::array();
  return out;
}
shape read_shape(const nlohmann::json& v) {
  const type_t type = type_named(v.at("type").get<std::string>());
  if (type != type_t::tuple_type) return {type, v.at("lens"), v.at("strides")};
  std::vector<shape> parts;
  for (const auto& part : v.at("sub_shapes")) parts.push_back(read_shape(part));
  return shape::tuple(std::move(parts));
}

nlohmann::json data_value(const argument& a) {
  if (a.get_shape().type() != type_t::tuple_type) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(a.data());
    return nlohmann::json::binary({bytes, bytes + a.get_shape().bytes()});
  }
  nlohmann::json out = nlohmann::json::array();
  for (const argument& part : a.parts()) out.push_back(data_value(part));
  return out;
}

// Refuses what is nested deeper than arguments are: the parser and what follows it descend by recursion.
struct nesting_check : nlohmann::json_sax<nlohmann::json> {
  static constexpr std::size_t most = 32;
  std::size_t depth = 0;
  std::string why;

  bool enter() {
    if (++depth <= most) return true;
    why = "expected at most " + std::to_string(most) + " values within another, found more";
    return false;
  }
  bool leave() { return --depth, true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) override {
    why = e.what();
    return false;
  }
};

argument read_data(const shape& s, const nlohmann::json& v) {
  if (s.type() == type_t::tuple_type) {
    std::vector<argument> parts;
    for (std::size_t i = 0; i < s.parts().size(); ++i) parts.push_back(read_data(s.parts()[i], v.at(i)));
    return argument::tuple(std::move(parts));
  }
  const auto& bytes = v.get_binary();
  if (bytes.size() != s.bytes()) raise(fault::of(errc::malformed, "bytes of an argument", s.bytes(), bytes.size()));
  argument out(s);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

argument::argument(const shape& s) : shape_(s) {
  if (s.type() == type_t::tuple_type) {
    for (const shape& part : s.parts()) parts_.emplace_back(part);
    return;
  }
  if (s.dynamic() && s.bytes() == static_cast<std::size_t>(-1))
    raise(errc::limit, "memory is there for the greatest extents of a shape: found " + to_string(s));
  buffer memory = buffer::allocate(std::max<std::size_t>(s.bytes(), 1));
  std::memset(memory.data(), 0, memory.size());
  std::byte* const bytes = memory.data();
  const auto elements = static_cast<std::int64_t>(s.dynamic() ? s.bytes() / s.type_size() : 0);
  const kiln::shape own = s.dynamic() ? kiln::shape{dtype_of_type(s.type()), {elements}} : to_kiln(s, "argument");
  value_ = kiln::argument(own, std::move(memory), bytes);
}

argument::argument(const shape& s, void* data) : shape_(s) {
  if (s.dynamic()) raise(errc::invalid_argument, "an argument's shape has numbers as extents: found " + to_string(s));
  if (!data && s.bytes() != 0)
    raise(errc::invalid_argument, "an argument borrows memory: found the address 0 for " + to_string(s));
  if (s.type() != type_t::tuple_type) value_ = kiln::argument(to_kiln(s, "argument"), data);
}

argument::argument(kiln::argument value) : shape_(from_kiln(value.get_shape())), value_(std::move(value)) {}

argument argument::tuple(std::vector<argument> parts) {
  argument out;
  std::vector<shape> shapes;
  for (const argument& part : parts) shapes.push_back(part.get_shape());
  out.shape_ = shape::tuple(std::move(shapes));
  out.parts_ = std::move(parts);
  return out;
}

bool operator==(const argument& a, const argument& b) {
  if (!(a.shape_ == b.shape_)) return false;
  if (a.shape_.type() == type_t::tuple_type) return a.parts_ == b.parts_;
  if (a.data() == b.data()) return true;
  return a.data() && b.data() && equal_bytes(a, b);
}

argument generate_argument(const shape& s, std::size_t seed) {
  std::mt19937_64 numbers(seed);
  return filled(s, [&](dtype t) {
    const std::uint64_t bits = numbers() >> 11;
    if (t == dtype::boolean) return static_cast<double>(bits & 1);
    if (is_float(t)) return static_cast<double>(bits) * 0x1p-52 - 1;
    return static_cast<double>(bits % 32) - (is_signed_integer(t) ? 16 : 0);
  });
}

argument fill_argument(const shape& s, double value) {
  return filled(s, [&](dtype) { return value; });
}

void save_argument(const argument& a, const std::filesystem::path& file) {
  const auto bytes = nlohmann::json::to_msgpack({{"shape", shape_value(a.get_shape())}, {"data", data_value(a)}});
  std::ofstream to(file, std::ios::binary);
  to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  to.close();
  if (!to) raise(errc::io, "the file is written: " + file.string());
}

argument load_argument(const std::filesystem::path& file) {
  const buffer mapped = map_file(file.string());
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(mapped.data()), mapped.size());
  try {
    nesting_check nesting;
    if (!nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &nesting, nlohmann::json::input_format_t::msgpack))
      raise(errc::malformed, file.string() + " holds an argument in MessagePack: " + nesting.why);
    const auto v = nlohmann::json::from_msgpack(bytes.begin(), bytes.end());
    return read_data(read_shape(v.at("shape")), v.at("data"));
  } catch (const nlohmann::json::exception& e) {
    raise(errc::malformed, file.string() + " holds an argument in MessagePack: " + e.what());
  }
}

}  // namespace kiln::migraphx
