#include <limits>

#include "kiln/onnx/impl/ops/cast.hpp"
#include "kiln/op/dynamic/strings.hpp"

// Conversions between element types.
namespace kiln::onnx {

dtype known_type(const node_context& c, std::int64_t element_type, std::string_view does) {
  const auto e = static_cast<element>(element_type);
  const auto t = to_dtype(e);
  if (!t || is_complex(*t)) c.unsupported(std::string(does) + " " + std::string(to_string(e)));
  return *t;
}

namespace {

// The largest finite number of an 8-bit float type that also has infinity or NaN; 0 for other types.
float largest_of(dtype t) {
  switch (t) {
    case dtype::f8e4m3fn: return 448;
    case dtype::f8e4m3fnuz: return 240;
    case dtype::f8e5m2:
    case dtype::f8e5m2fnuz: return 57344;
    default: return 0;
  }
}

// To a power of two: converting rounds to the nearest one, which modes up and down correct.
value to_scale(const node_context& c, value x) {
  const auto mode = c.choice("round_mode", {"up", "down", "nearest"});
  const bool saturate = c.flag("saturate", true);
  const value size = x.convert(dtype::f32).abs();
  const value power = size.convert(dtype::f8e8m0).convert(dtype::f32);
  const value top = c.build.scalar(dtype::f32, 0x1p127f);
  value moved = power;
  if (mode == "up") {
    moved = (power < size).where(power * 2.0f, power);  // beyond the top is infinity, which is stored as NaN
    if (saturate) moved = (moved > top).where(top, moved);
  } else if (mode == "down") {
    moved = (power > size).where(power * 0.5f, power);
  } else if (!saturate) {
    const value nan = c.build.scalar(dtype::f32, std::numeric_limits<float>::quiet_NaN());
    moved = (size < c.build.scalar(dtype::f32, 0x1.8p127f)).where(power, nan);
  }
  return moved.convert(dtype::f8e8m0);
}

variables import_cast(node_context& c) {
  if (!c.find("to")) c.malformed("attribute 'to' is missing");
  return {cast_to(c, c.in(0), known_type(c, c.integer("to", 0), "converts to"))};
}
// The first version names the type.
variables import_cast_1(node_context& c) {
  const auto name = c.text("to", "");
  for (int e = 1; e <= 16; ++e) {
    const auto known = to_string(static_cast<element>(e));
    bool equal = known.size() == name.size();
    for (std::size_t i = 0; equal && i < name.size(); ++i) equal = known[i] == (name[i] | 0x20);
    if (equal) return {cast_to(c, c.in(0), known_type(c, e, "converts to"))};
  }
  c.malformed("attribute 'to' names no type: '" + std::string(name) + "'");
}
variables import_cast_like(node_context& c) { return {cast_to(c, c.in(0), c.in(1).type())}; }

}  // namespace

value saturated(value x, dtype to) {
  if (to == dtype::f4e2m1 && is_float(x.type()))  // has no NaN: ONNX's tests expect zero
    return x.owner().add(op::is_nan{}, x).where(x.owner().scalar(x.type(), -0.0f), x);
  const float largest = largest_of(to);
  if (largest == 0) return x;
  if (!is_float(x.type()) || is_narrow(x.type())) x = x.convert(dtype::f32);
  const value top = x.owner().scalar(x.type(), largest), bottom = x.owner().scalar(x.type(), -largest);
  return (x > top).where(top, (x < bottom).where(bottom, x));
}

value cast_to(const node_context& c, value x, dtype to) {
  if (x.type() == to) return x;
  if (is_complex(x.type()) || is_complex(to)) c.unsupported("converts complex numbers");
  if (x.type() == dtype::string) return c.build.add(op::read_numbers{to}, x);
  if (to == dtype::string) return c.build.add(op::print_numbers{}, x);
  if (to == dtype::f8e8m0) return to_scale(c, x);
  return (to == dtype::f4e2m1 || c.flag("saturate", true) ? saturated(x, to) : x).convert(to);
}

std::span<const op_importer> cast_importers() {
  static constexpr op_importer table[] = {
      {"", "Cast", 1, import_cast_1},
      {"", "Cast", 6, import_cast},
      {"", "CastLike", 15, import_cast_like},
  };
  return table;
}

}  // namespace kiln::onnx
