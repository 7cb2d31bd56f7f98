#include "kiln/tensorflow/impl/file/graph_file.hpp"

// Numbers and names of types.proto.
namespace kiln::tensorflow {

namespace {

constexpr std::uint64_t reference = 100;

struct known_type {
  std::uint64_t number;
  std::string_view name;
  onnx::element element;
};
using onnx::element;
constexpr known_type types[] = {
    {1, "DT_FLOAT", element::f32},
    {2, "DT_DOUBLE", element::f64},
    {3, "DT_INT32", element::i32},
    {4, "DT_UINT8", element::u8},
    {5, "DT_INT16", element::i16},
    {6, "DT_INT8", element::i8},
    {7, "DT_STRING", element::string},
    {8, "DT_COMPLEX64", element::complex64},
    {9, "DT_INT64", element::i64},
    {10, "DT_BOOL", element::boolean},
    {11, "DT_QINT8", element::undefined},
    {12, "DT_QUINT8", element::undefined},
    {13, "DT_QINT32", element::undefined},
    {14, "DT_BFLOAT16", element::bf16},
    {15, "DT_QINT16", element::undefined},
    {16, "DT_QUINT16", element::undefined},
    {17, "DT_UINT16", element::u16},
    {18, "DT_COMPLEX128", element::complex128},
    {19, "DT_HALF", element::f16},
    {20, "DT_RESOURCE", element::undefined},
    {21, "DT_VARIANT", element::undefined},
    {22, "DT_UINT32", element::u32},
    {23, "DT_UINT64", element::u64},
    {24, "DT_FLOAT8_E5M2", element::f8e5m2},
    {25, "DT_FLOAT8_E4M3FN", element::f8e4m3fn},
};

const known_type* find_type(std::uint64_t number) {
  for (const known_type& t : types)
    if (t.number == number % reference && number < 2 * reference) return &t;
  return nullptr;
}

}  // namespace

onnx::element to_element(std::uint64_t type) {
  const known_type* t = find_type(type);
  return t ? t->element : element::undefined;
}
std::string type_name(std::uint64_t type) {
  const known_type* t = find_type(type);
  return t ? std::string(t->name) : "type " + std::to_string(type);
}
std::uint64_t type_number(std::string_view name) {
  for (const known_type& t : types)
    if (t.name == name) return t.number;
  return name.ends_with("_REF") ? type_number(name.substr(0, name.size() - 4)) : 0;
}

}  // namespace kiln::tensorflow
