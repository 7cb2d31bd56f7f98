#include <flatbuffers/flatbuffers.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "kiln/core/error.hpp"
#include "kiln/generate/adapters.hpp"
#include "kiln/onnx/element.hpp"

// table Parameter { name: string; dims: [int64]; data_type: int32 (ONNX's number); raw_data: [uint8] (at 8 bytes); }
// table Adapter { format_version, adapter_version, model_version: int; parameters: [Parameter]; }   the root, "TORT"
namespace kiln::language {

namespace {

namespace fb = flatbuffers;

constexpr const char* identifier = "TORT";
constexpr std::int32_t format_version = 1;
constexpr std::size_t alignment = 8;
// Where the fields stand in a table's list of offsets.
constexpr fb::voffset_t field_0 = 4, field_1 = 6, field_2 = 8, field_3 = 10;

struct numbered_table : fb::Table {
  bool has_number(const fb::Verifier& v, fb::voffset_t field) const {
    return VerifyField<std::int32_t>(v, field, sizeof(std::int32_t));
  }
};

struct parameter_table : numbered_table {
  const fb::String* name() const { return GetPointer<const fb::String*>(field_0); }
  const fb::Vector<std::int64_t>* lens() const { return GetPointer<const fb::Vector<std::int64_t>*>(field_1); }
  std::int32_t type() const { return GetField<std::int32_t>(field_2, 0); }
  const fb::Vector<std::uint8_t>* bytes() const { return GetPointer<const fb::Vector<std::uint8_t>*>(field_3); }
  bool Verify(fb::Verifier& v) const {
    return VerifyTableStart(v) && VerifyOffset(v, field_0) && v.VerifyString(name()) && VerifyOffset(v, field_1) &&
           v.VerifyVector(lens()) && has_number(v, field_2) && VerifyOffset(v, field_3) && v.VerifyVector(bytes()) &&
           v.EndTable();
  }
};

using parameter_list = fb::Vector<fb::Offset<parameter_table>>;

struct adapter_table : numbered_table {
  std::int32_t format() const { return GetField<std::int32_t>(field_0, 0); }
  std::int32_t adapter_version() const { return GetField<std::int32_t>(field_1, 0); }
  std::int32_t model_version() const { return GetField<std::int32_t>(field_2, 0); }
  const parameter_list* parameters() const { return GetPointer<const parameter_list*>(field_3); }
  bool Verify(fb::Verifier& v) const {
    return VerifyTableStart(v) && has_number(v, field_0) && has_number(v, field_1) && has_number(v, field_2) &&
           VerifyOffset(v, field_3) && v.VerifyVector(parameters()) && v.VerifyVectorOfTables(parameters()) &&
           v.EndTable();
  }
};

argument value_of(const parameter_table& p, const std::string& where) {
  const auto type = onnx::to_dtype(static_cast<onnx::element>(p.type()));
  if (!type || *type == dtype::string || bits_of(*type) < 8)
    raise(errc::unsupported, where + ": element type " + std::to_string(p.type()) + " is none of an adapter");
  dims lens;
  const std::size_t held = p.bytes() ? p.bytes()->size() : 0;
  std::size_t elements = 1;
  for (fb::uoffset_t d = 0; p.lens() && d < p.lens()->size(); ++d) {
    std::int64_t n = 0;  // a broken file may not have it at its alignment
    std::memcpy(&n, p.lens()->Data() + d * sizeof n, sizeof n);
    if (n < 0 || d == max_rank) raise(errc::malformed, where + ": expected at most 8 extents of 0 or more");
    // of what the file holds no element is left out, so a product beyond it is wrong however large it is
    if (n > 0 && elements > FLATBUFFERS_MAX_BUFFER_SIZE / static_cast<std::size_t>(n))
      raise(errc::malformed, where + ": the extents are beyond what a file holds");
    elements *= static_cast<std::size_t>(n);
    lens.push_back(n);
  }
  const shape s{*type, lens};
  if (held != elements * size_of(*type))
    raise(errc::malformed, where + ": expected " + std::to_string(elements * size_of(*type)) + " bytes for " +
                               kiln::to_string(s) + ", found " + std::to_string(held));
  argument out(s);
  if (held > 0) std::memcpy(out.data(), p.bytes()->data(), held);
  return out;
}

}  // namespace

adapter parse_adapter(std::span<const std::byte> bytes, std::string_view source) {
  const std::string file(source);
  if (bytes.size() < alignment || bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE ||
      !fb::BufferHasIdentifier(bytes.data(), identifier))
    raise(errc::malformed, file + ": expected an adapter's file, whose bytes 4 to 7 are \"TORT\"");
  // offsets are read at their alignment
  std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  constexpr fb::uoffset_t depth = 8, most_tables = 1u << 24;
  fb::Verifier check(data, bytes.size(), depth, most_tables);
  if (!check.VerifyBuffer<adapter_table>(identifier)) raise(errc::malformed, file + ": the file is cut off or broken");
  const auto& root = *fb::GetRoot<adapter_table>(data);
  if (root.format() != format_version)
    raise(errc::unsupported, file + ": expected version 1 of the format, found " + std::to_string(root.format()));
  adapter out{root.adapter_version(), root.model_version(), {}};
  for (fb::uoffset_t k = 0; root.parameters() && k < root.parameters()->size(); ++k) {
    const parameter_table& p = *root.parameters()->Get(k);
    if (!p.name() || p.name()->size() == 0)
      raise(errc::malformed, file + ": parameter " + std::to_string(k) + " has no name");
    const std::string name = p.name()->str();
    out.parameters.emplace_back(name, value_of(p, file + ": parameter '" + name + "'"));
  }
  return out;
}

adapter read_adapter(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) raise(errc::not_found, "no adapter's file '" + file.string() + "'");
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) raise(errc::io, "cannot read '" + file.string() + "'");
  return parse_adapter(std::as_bytes(std::span(bytes)), file.string());
}

std::vector<std::byte> adapter_bytes(const adapter& a) {
  fb::FlatBufferBuilder to;
  std::vector<fb::Offset<parameter_table>> all;
  for (const auto& [name, value] : a.parameters) {
    if (!value) raise(errc::invalid_argument, "parameter '" + name + "' has no value");
    const argument dense = value.contiguous();
    const std::size_t size = static_cast<std::size_t>(dense.elements()) * size_of(dense.get_shape().type);
    std::vector<std::int64_t> lens;
    for (const dimension& d : dense.get_shape().lens) lens.push_back(d.value());
    const auto text = to.CreateString(name);
    const auto extents = to.CreateVector(lens);
    to.ForceVectorAlignment(size, sizeof(std::uint8_t), alignment);
    const auto raw = to.CreateVector(reinterpret_cast<const std::uint8_t*>(dense.data()), size);
    const auto start = to.StartTable();
    to.AddOffset(field_0, text);
    to.AddOffset(field_1, extents);
    to.AddElement<std::int32_t>(field_2, static_cast<std::int32_t>(onnx::to_element(dense.get_shape().type)), 0);
    to.AddOffset(field_3, raw);
    all.emplace_back(to.EndTable(start));
  }
  const auto list = to.CreateVector(all);
  const auto start = to.StartTable();
  to.AddElement<std::int32_t>(field_0, format_version, 0);
  to.AddElement<std::int32_t>(field_1, a.adapter_version, 0);
  to.AddElement<std::int32_t>(field_2, a.model_version, 0);
  to.AddOffset(field_3, list);
  to.Finish(fb::Offset<adapter_table>(to.EndTable(start)), identifier);
  const auto* begin = reinterpret_cast<const std::byte*>(to.GetBufferPointer());
  return {begin, begin + to.GetSize()};
}

}  // namespace kiln::language
