#include <flatbuffers/flatbuffers.h>

#include "kiln/quantize/impl/table_forms.hpp"

// table KeyValue { key: string (required); value: string; }
// table TrtTable { dict: [KeyValue]; }     the root
namespace kiln::quantize::detail {
namespace {

// Where the fields stand in a table's list of offsets.
constexpr flatbuffers::voffset_t first_field = 4, second_field = 6;

struct key_value : flatbuffers::Table {
  const flatbuffers::String* key() const { return GetPointer<const flatbuffers::String*>(first_field); }
  const flatbuffers::String* value() const { return GetPointer<const flatbuffers::String*>(second_field); }
  bool Verify(flatbuffers::Verifier& v) const {
    return VerifyTableStart(v) && VerifyOffsetRequired(v, first_field) && v.VerifyString(key()) &&
           VerifyOffset(v, second_field) && v.VerifyString(value()) && v.EndTable();
  }
};

using entries = flatbuffers::Vector<flatbuffers::Offset<key_value>>;

struct table : flatbuffers::Table {
  const entries* dict() const { return GetPointer<const entries*>(first_field); }
  bool Verify(flatbuffers::Verifier& v) const {
    return VerifyTableStart(v) && VerifyOffset(v, first_field) && v.VerifyVector(dict()) &&
           v.VerifyVectorOfTables(dict()) && v.EndTable();
  }
};

}  // namespace

std::string flatbuffers_table(const ranges& r) {
  flatbuffers::FlatBufferBuilder to;
  std::vector<flatbuffers::Offset<key_value>> all;
  for (const auto& [name, of] : r) {
    const auto key = to.CreateString(name), value = to.CreateString(decimal(of.whole.magnitude()));
    const auto start = to.StartTable();
    to.AddOffset(first_field, key);
    to.AddOffset(second_field, value);
    all.emplace_back(to.EndTable(start));
  }
  const auto dict = to.CreateVector(all);
  const auto start = to.StartTable();
  to.AddOffset(first_field, dict);
  to.Finish(flatbuffers::Offset<table>(to.EndTable(start)));
  return {reinterpret_cast<const char*>(to.GetBufferPointer()), to.GetSize()};
}

ranges parse_flatbuffers(std::string_view bytes, const std::string& place) {
  // offsets are read at their alignment
  const std::vector<std::uint64_t> aligned = [&] {
    std::vector<std::uint64_t> out(bytes.size() / sizeof(std::uint64_t) + 1);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }();
  const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  constexpr flatbuffers::uoffset_t depth = 8, most_tables = 1u << 24;
  flatbuffers::Verifier check(data, bytes.size(), depth, most_tables);
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || !check.VerifyBuffer<table>(nullptr))
    bad_table(place, 0, "a flatbuffer of keys and values", "one that is cut off or broken");
  ranges out;
  const entries* all = flatbuffers::GetRoot<table>(data)->dict();
  for (flatbuffers::uoffset_t i = 0; all && i < all->size(); ++i) {
    const key_value& entry = *all->Get(i);
    const std::string name = entry.key()->str(), text = entry.value() ? entry.value()->str() : "";
    const double end = magnitude_of_text(text);
    if (end < 0) bad_table(place, 0, "a finite decimal number for " + in_quotes(name), in_quotes(text));
    add_range(out, name, {{-end, end}, {}, 1, {}}, place, 0);
  }
  return out;
}

}  // namespace kiln::quantize::detail
