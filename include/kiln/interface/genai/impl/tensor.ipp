#include <algorithm>
#include <cstring>

#include "kiln/interface/genai/impl/values.hpp"

namespace kiln::genai {
namespace {

struct element_row {
  OgaElementType given;
  dtype type;
};
constexpr element_row elements[] = {{OgaElementType_float32, dtype::f32},   {OgaElementType_uint8, dtype::u8},
                                    {OgaElementType_int8, dtype::i8},       {OgaElementType_uint16, dtype::u16},
                                    {OgaElementType_int16, dtype::i16},     {OgaElementType_int32, dtype::i32},
                                    {OgaElementType_int64, dtype::i64},     {OgaElementType_bool, dtype::boolean},
                                    {OgaElementType_float16, dtype::f16},   {OgaElementType_float64, dtype::f64},
                                    {OgaElementType_uint32, dtype::u32},    {OgaElementType_uint64, dtype::u64},
                                    {OgaElementType_complex64, dtype::c64}, {OgaElementType_complex128, dtype::c128},
                                    {OgaElementType_bfloat16, dtype::bf16}};

dtype type_from(OgaElementType t) {
  for (const element_row& r : elements)
    if (r.given == t) return r.type;
  raise(errc::unsupported,
        "the element type of a tensor is a number: found OgaElementType " + std::to_string(static_cast<int>(t)));
}
OgaElementType type_of(dtype t) {
  for (const element_row& r : elements)
    if (r.type == t) return r.given;
  raise(errc::unsupported, "GenAI has no element type for " + std::string(to_string(t)));
}

dims extents_from(std::span<const std::int64_t> given, dtype type) {
  dims out;
  auto bytes = static_cast<std::int64_t>(size_of(type));
  for (const std::int64_t n : given) {
    if (n < 0) raise(fault::of(errc::invalid_argument, "an extent of a tensor is 0 or more", 0, n));
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(n, 1), &bytes))
      raise(errc::limit, "the bytes of a tensor are counted in 63 bits");
    out.push_back(n);
  }
  return out;
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaCreateTensorFromBuffer(void* data, const int64_t* shape_dims, size_t shape_dims_count,
                                     OgaElementType element_type, OgaTensor** out) {
  return made(out, [&] {
    const kiln::dtype type = type_from(element_type);
    const kiln::shape s(type, extents_from(given_array(shape_dims, shape_dims_count, "the extents"), type));
    if (data) return new OgaTensor{kiln::argument(s, data)};
    kiln::argument own(s);
    std::memset(own.data(), 0, static_cast<std::size_t>(s.bytes().value()));
    return new OgaTensor{std::move(own)};
  });
}
void OgaDestroyTensor(OgaTensor* tensor) { delete tensor; }
OgaResult* OgaTensorGetType(OgaTensor* tensor, OgaElementType* out) {
  return told(out, [&] { return type_of(given(tensor, "the tensor").value.get_shape().type); });
}
OgaResult* OgaTensorGetShapeRank(OgaTensor* tensor, size_t* out) {
  return told(out, [&] { return given(tensor, "the tensor").value.get_shape().rank(); });
}
OgaResult* OgaTensorGetShape(OgaTensor* tensor, int64_t* shape_dims, size_t shape_dims_count) {
  return guarded([&] {
    const auto& lens = given(tensor, "the tensor").value.get_shape().lens;
    if (shape_dims_count != lens.size())
      raise(kiln::fault::of(kiln::errc::invalid_argument, "as many extents as the tensor's rank", lens.size(),
                            shape_dims_count));
    const auto to = given_array(shape_dims, shape_dims_count, "the place of the extents");
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = lens[k].value();
  });
}
OgaResult* OgaTensorGetData(OgaTensor* tensor, void** out) {
  return told(out, [&] { return static_cast<void*>(given(tensor, "the tensor").value.data()); });
}

OgaResult* OgaCreateNamedTensors(OgaNamedTensors** out) {
  return made(out, [] { return new OgaNamedTensors; });
}
void OgaDestroyNamedTensors(OgaNamedTensors* named_tensors) { delete named_tensors; }
OgaResult* OgaNamedTensorsGet(OgaNamedTensors* named_tensors, const char* name, OgaTensor** out) {
  return made(out, [&] {
    const auto& all = given(named_tensors, "the named tensors").all;
    const auto at = all.find(text(name, "the tensor's name"));
    if (at == all.end()) raise(kiln::errc::not_found, "there is no tensor '" + std::string(name) + "'");
    return new OgaTensor{at->second};
  });
}
OgaResult* OgaNamedTensorsSet(OgaNamedTensors* named_tensors, const char* name, OgaTensor* tensor) {
  return guarded([&] {
    given(named_tensors, "the named tensors")
        .all.insert_or_assign(text(name, "the tensor's name"), given(tensor, "the tensor").value);
  });
}
OgaResult* OgaNamedTensorsDelete(OgaNamedTensors* named_tensors, const char* name) {
  return guarded([&] {
    auto& all = given(named_tensors, "the named tensors").all;
    const auto at = all.find(text(name, "the tensor's name"));
    if (at == all.end()) raise(kiln::errc::not_found, "there is no tensor '" + std::string(name) + "'");
    all.erase(at);
  });
}
OgaResult* OgaNamedTensorsCount(const OgaNamedTensors* named_tensors, size_t* out) {
  return told(out, [&] { return given(named_tensors, "the named tensors").all.size(); });
}
OgaResult* OgaNamedTensorsGetNames(const OgaNamedTensors* named_tensors, OgaStringArray** out) {
  return made(out, [&] {
    OgaStringArray names;
    for (const auto& [name, value] : given(named_tensors, "the named tensors").all) names.texts.push_back(name);
    return new OgaStringArray(std::move(names));
  });
}
