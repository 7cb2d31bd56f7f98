#include <flatbuffers/flexbuffers.h>

#include <algorithm>

#include "kiln/tensorflow/impl/tflite/numbers.hpp"

// Operators' names and options. Those of builtin operators are read by the field names of the description that flatc
// compiled (tflite_file.fbs), those of custom operators from a map of flexbuffers.
namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind;

template <class T> const flatbuffers::Vector<T>& vector_at(const std::uint8_t* at) {
  return *reinterpret_cast<const flatbuffers::Vector<T>*>(at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at));
}

// A field's value at its place in the file.
attribute read_field(std::string name, flatbuffers::ElementaryType type, bool is_list, const std::uint8_t* at) {
  using namespace flatbuffers;
  if (is_list) {
    attribute a;
    a.name = std::move(name);
    if (type == ET_FLOAT) {
      a.kind = attribute_kind::reals;
      for (const float v : vector_at<float>(at)) a.reals.push_back(v);
    } else {
      a.kind = attribute_kind::integers;
      for (const std::int32_t v : vector_at<std::int32_t>(at)) a.integers.push_back(v);
    }
    return a;
  }
  switch (type) {
    case ET_BOOL: return number_attribute(std::move(name), ReadScalar<std::uint8_t>(at) != 0);
    case ET_CHAR: return number_attribute(std::move(name), ReadScalar<std::int8_t>(at));
    case ET_UINT: return number_attribute(std::move(name), ReadScalar<std::uint32_t>(at));
    case ET_LONG: return number_attribute(std::move(name), ReadScalar<std::int64_t>(at));
    case ET_FLOAT: return real_attribute(std::move(name), ReadScalar<float>(at));
    case ET_STRING:
      return text_attribute(std::move(name), reinterpret_cast<const String*>(at + ReadScalar<uoffset_t>(at))->str());
    default: return number_attribute(std::move(name), ReadScalar<std::int32_t>(at));
  }
}

std::vector<attribute> read_builtin(const flatbuffers::Table& options, const flatbuffers::TypeTable& fields) {
  std::vector<attribute> out;
  for (std::size_t i = 0; i < fields.num_elems; ++i) {
    const auto slot = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
    const std::uint8_t* const at = options.GetAddressOf(slot);
    const flatbuffers::TypeCode code = fields.type_codes[i];
    const auto type = static_cast<flatbuffers::ElementaryType>(code.base_type);
    if (at) out.push_back(read_field(fields.names[i], type, code.is_repeating != 0, at));
  }
  return out;
}

// The numbers of a map as they stand in the file. The library's own conversions also read numbers of texts, for which
// they need more than headers.
struct map_numbers : flexbuffers::Map {
  explicit map_numbers(const flexbuffers::Map& m) : Map(m) {}
  double real(std::size_t i) const { return flexbuffers::ReadDouble(data_ + i * byte_width_, byte_width_); }
  std::int64_t integer(std::size_t i) const { return flexbuffers::ReadInt64(data_ + i * byte_width_, byte_width_); }
};

// A structure of numbers of 32 bits.
std::vector<attribute> read_words(const flatbuffers::Vector<std::uint8_t>& bytes, const std::string& where) {
  if (bytes.size() % 4 || bytes.size() > 64)
    refuse_part(where, "its options are up to 16 numbers of 32 bits, found " + std::to_string(bytes.size()) + " bytes");
  std::vector<std::int64_t> words;
  for (flatbuffers::uoffset_t i = 0; i < bytes.size(); i += 4)
    words.push_back(flatbuffers::ReadScalar<std::int32_t>(bytes.data() + i));
  return {numbers_attribute("words", std::move(words))};
}

// A custom operator's options: a map of numbers and texts.
std::vector<attribute> read_custom(const flatbuffers::Vector<std::uint8_t>& bytes, const std::string& where) {
  std::vector<attribute> out;
  if (bytes.size() < 3) return out;
  std::vector<std::uint8_t> seen;
  if (!flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &seen))
    refuse_part(where, "its options are no flexbuffer");
  const flexbuffers::Reference root = flexbuffers::GetRoot(bytes.data(), bytes.size());
  if (!root.IsMap()) return out;
  const map_numbers map(root.AsMap());
  for (std::size_t i = 0; i < map.size(); ++i) {
    std::string name = map.Keys()[i].AsKey();
    switch (map.Values()[i].GetType()) {
      case flexbuffers::FBT_FLOAT:
        out.push_back(real_attribute(std::move(name), static_cast<float>(map.real(i))));
        break;
      case flexbuffers::FBT_BOOL:
      case flexbuffers::FBT_INT:
      case flexbuffers::FBT_UINT: out.push_back(number_attribute(std::move(name), map.integer(i))); break;
      case flexbuffers::FBT_STRING:
        out.push_back(text_attribute(std::move(name), map.Values()[i].AsString().str()));
        break;
      default: break;
    }
  }
  return out;
}

}  // namespace

void refuse_part(const std::string& where, const std::string& why) { raise(errc::malformed, where + ": " + why); }

bool needs_no_reals(std::string_view type) {
  static constexpr std::string_view list[] = {"BITCAST", "CAST", "RANK", "SHAPE", "ARG_MAX", "ARG_MIN"};
  return std::find(std::begin(list), std::end(list), type) != std::end(list);
}
bool moves_elements(std::string_view type) {
  static constexpr std::string_view list[] = {
      "BATCH_TO_SPACE_ND",
      "BROADCAST_TO",
      "CONCATENATION",
      "DEPTH_TO_SPACE",
      "DYNAMIC_UPDATE_SLICE",
      "EMBEDDING_LOOKUP",
      "EXPAND_DIMS",
      "GATHER",
      "GATHER_ND",
      "MAXIMUM",
      "MINIMUM",
      "PACK",
      "REDUCE_MAX",
      "REDUCE_MIN",
      "RESHAPE",
      "RESIZE_NEAREST_NEIGHBOR",
      "REVERSE_SEQUENCE",
      "REVERSE_V2",
      "SELECT",
      "SELECT_V2",
      "SLICE",
      "SPACE_TO_DEPTH",
      "SPLIT",
      "SPLIT_V",
      "SQUEEZE",
      "STRIDED_SLICE",
      "TILE",
      "TOPK_V2",
      "TRANSPOSE",
      "UNPACK",
  };
  return std::find(std::begin(list), std::end(list), type) != std::end(list);
}

// The field of a byte is older: it says 127 for the codes that it cannot hold.
std::string operator_name(const parts::OperatorCode& code) {
  const auto number =
      std::max<std::int32_t>(code.deprecated_builtin_code(), static_cast<std::int32_t>(code.builtin_code()));
  const auto which = static_cast<parts::BuiltinOperator>(number);
  if (which == parts::BuiltinOperator::CUSTOM) return text_of(code.custom_code());
  const std::string_view name = parts::EnumNameBuiltinOperator(which);
  return name.empty() ? "operator code " + std::to_string(number) : std::string(name);
}

std::vector<attribute> read_options(const parts::Operator& op, std::string_view type, const std::string& where) {
  if (const auto* bytes = op.custom_options())
    return type == "Convolution2DTransposeBias" ? read_words(*bytes, where) : read_custom(*bytes, where);
  const auto* options = static_cast<const flatbuffers::Table*>(op.builtin_options());
  const auto which = static_cast<std::size_t>(op.builtin_options_type());
  const flatbuffers::TypeTable& all = *parts::BuiltinOptionsTypeTable();
  if (!options || which == 0 || which >= all.num_elems) return {};
  return read_builtin(*options, *all.type_refs[all.type_codes[which].sequence_ref]());
}

}  // namespace kiln::tensorflow
