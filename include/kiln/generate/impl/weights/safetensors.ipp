#include "kiln/generate/weights/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kiln/core/error.hpp"
#include "kiln/core/mapped_file.hpp"

namespace kiln::language {

namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::string_view where, const std::string& what) {
  throw error(errc::malformed, std::string(where) + ": " + what);
}

const json& member(const json& of, const char* key, const std::string& where) {
  const auto at = of.find(key);
  if (at == of.end()) refuse(where, std::string("expected \"") + key + "\", found none");
  return *at;
}
std::int64_t count_of(const json& j, const std::string& where) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  if (!j.is_number_unsigned() || j.get<std::uint64_t>() > most)
    refuse(where, "expected a whole number from 0 on, found " +
                      j.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40));
  return static_cast<std::int64_t>(j.get<std::uint64_t>());
}

constexpr std::pair<std::string_view, dtype> types[] = {
    {"F32", dtype::f32}, {"F16", dtype::f16},      {"BF16", dtype::bf16},        {"F64", dtype::f64},
    {"I64", dtype::i64}, {"I32", dtype::i32},      {"I16", dtype::i16},          {"I8", dtype::i8},
    {"U8", dtype::u8},   {"BOOL", dtype::boolean}, {"F8_E4M3", dtype::f8e4m3fn}, {"F8_E5M2", dtype::f8e5m2},
    {"U16", dtype::u16}, {"U32", dtype::u32},      {"U64", dtype::u64}};

weight_entry read_entry(const std::string& name, const json& j, const buffer& file, std::size_t begin,
                        const std::string& where) {
  if (!j.is_object()) refuse(where, std::string("expected an object, found ") + j.type_name());
  weight_entry e;
  e.name = name;
  const json& type = member(j, "dtype", where);
  if (!type.is_string()) refuse(where + ".dtype", std::string("expected a string, found ") + type.type_name());
  const auto& spelled = type.get_ref<const std::string&>();
  const auto known =
      std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return t.first == spelled; });
  if (known == std::end(types)) e.fault = "the type '" + spelled + "', which kiln does not have";
  const json& shape = member(j, "shape", where);
  if (!shape.is_array() || shape.size() > 8)
    refuse(where + ".shape", "expected a list of at most 8 extents, found " + std::string(shape.type_name()));
  for (const json& extent : shape) e.extents.push_back(count_of(extent, where + ".shape"));
  const json& offsets = member(j, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2) refuse(where + ".data_offsets", "expected two offsets");
  const std::int64_t from = count_of(offsets[0], where + ".data_offsets"),
                     to = count_of(offsets[1], where + ".data_offsets");
  const auto room = static_cast<std::int64_t>(file.size() - begin);
  if (from > to || to > room)
    refuse(where + ".data_offsets", "expected offsets in order up to " + std::to_string(room) + ", found " +
                                        std::to_string(from) + " and " + std::to_string(to));
  if (e.fault.empty()) {
    e.type = known->second;
    const std::int64_t bytes = stored_bytes(e.format, e.type, e.extents);
    if (bytes != to - from)
      refuse(where + ".data_offsets",
             "expected " + std::to_string(bytes) + " bytes for type and extents, found " + std::to_string(to - from));
  }
  e.bytes = buffer_part(file, begin + static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
  return e;
}

}  // namespace

std::vector<weight_entry> read_safetensors(const buffer& file, std::string_view name) {
  constexpr std::size_t prefix = 8, longest = std::size_t{100} << 20;  // as other readers have it
  const std::string own(name);
  if (file.size() < prefix)
    refuse(own, "expected the header's length in 8 bytes, found " + std::to_string(file.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), prefix);
  if (length > longest || length > file.size() - prefix)
    refuse(own, "expected a header of at most " + std::to_string(std::min(longest, file.size() - prefix)) +
                    " bytes, found the length " + std::to_string(length));
  const auto* const text = reinterpret_cast<const char*>(file.data() + prefix);
  json header;
  try {
    header = json::parse(text, text + length);
  } catch (const json::exception& e) {
    refuse(own + ": header", e.what());
  }
  if (!header.is_object()) refuse(own + ": header", std::string("expected an object, found ") + header.type_name());
  std::vector<weight_entry> out;
  for (const auto& [key, value] : header.items())
    if (key != "__metadata__")
      out.push_back(read_entry(key, value, file, prefix + length, own + ": tensor '" + key + "'"));
  std::vector<const weight_entry*> by_place;
  for (const weight_entry& e : out)
    if (e.bytes.size() > 0) by_place.push_back(&e);
  std::sort(by_place.begin(), by_place.end(),
            [](const weight_entry* a, const weight_entry* b) { return a->bytes.data() < b->bytes.data(); });
  for (std::size_t k = 1; k < by_place.size(); ++k)
    if (by_place[k - 1]->bytes.data() + by_place[k - 1]->bytes.size() > by_place[k]->bytes.data())
      refuse(own + ": tensor '" + by_place[k]->name + "'.data_offsets",
             "expected bytes of its own, found some of '" + by_place[k - 1]->name + "'");
  return out;
}

weight_table load_safetensors(const std::filesystem::path& file) {
  if (file.extension() != ".json") return weight_table(read_safetensors(map_file(file.string()), file.string()));
  const std::string own = file.string();
  const buffer bytes = map_file(own);
  json index;
  try {
    const auto* const text = reinterpret_cast<const char*>(bytes.data());
    index = json::parse(text, text + bytes.size());
  } catch (const json::exception& e) {
    refuse(own, e.what());
  }
  if (!index.is_object()) refuse(own, std::string("expected an object, found ") + index.type_name());
  const json& map = member(index, "weight_map", own);
  if (!map.is_object()) refuse(own + ": weight_map", std::string("expected an object, found ") + map.type_name());
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map.items()) {
    const std::string where = own + ": weight_map." + tensor;
    if (!shard.is_string()) refuse(where, std::string("expected a file's name, found ") + shard.type_name());
    const auto& name = shard.get_ref<const std::string&>();
    if (name.empty() || name.find('/') != name.npos || name == "..")
      refuse(where, "expected a file of the index's folder, found '" + name + "'");
    shards.insert(name);
  }
  std::vector<weight_entry> all;
  for (const std::string& shard : shards) {
    const auto path = file.parent_path() / shard;
    for (weight_entry& e : read_safetensors(map_file(path.string()), path.string())) all.push_back(std::move(e));
  }
  weight_table out(std::move(all));
  for (const auto& [tensor, shard] : map.items())
    if (!out.find(tensor))
      refuse(own + ": weight_map." + tensor, "expected it in " + shard.get<std::string>() + ", found none");
  return out;
}

}  // namespace kiln::language
