#include "kiln/generate/weights/gguf.hpp"

#include <algorithm>
#include <cstring>

#include "kiln/core/error.hpp"
#include "kiln/core/mapped_file.hpp"

namespace kiln::language {

namespace {

// Reads numbers and texts one after the other; each is checked against what is left of the file.
class gguf_reader {
 public:
  gguf_reader(const buffer& file, const std::string& name) : file_(file), name_(name) {}

  [[noreturn]] void refuse(const std::string& field, const std::string& what, errc code = errc::malformed) const {
    throw error(code, name_ + ": " + field + " (byte " + std::to_string(at_) + "): " + what);
  }
  std::size_t left() const { return file_.size() - at_; }
  std::size_t place() const { return at_; }

  template <class T> T number(const std::string& field) {
    need(sizeof(T), field);
    T v;
    std::memcpy(&v, file_.data() + at_, sizeof v);
    at_ += sizeof v;
    return v;
  }
  std::string_view text(const std::string& field) {
    const auto n = number<std::uint64_t>(field);
    need(n, field);
    const std::string_view out(reinterpret_cast<const char*>(file_.data() + at_), static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return out;
  }
  // So many things follow, of so many bytes each at least.
  std::uint64_t count(const std::string& field, std::size_t least) {
    const auto n = number<std::uint64_t>(field);
    if (n > left() / least)
      refuse(field, "expected at most " + std::to_string(left() / least) +
                        ", as many as the file has room for, found " + std::to_string(n));
    return n;
  }

 private:
  void need(std::uint64_t n, const std::string& field) const {
    if (n > left())
      refuse(field, "expected " + std::to_string(n) + " bytes, found " + std::to_string(left()) + " before the end");
  }
  const buffer& file_;
  const std::string& name_;
  std::size_t at_ = 0;
};

// The types of metadata.
enum value_type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

std::size_t size_of_value(std::uint32_t type) {
  constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return type < std::size(sizes) ? sizes[type] : 0;
}
bool is_real(std::uint32_t type) { return type == f32 || type == f64; }

std::int64_t read_integer(gguf_reader& in, std::uint32_t type, const std::string& field) {
  switch (type) {
    case u8: return in.number<std::uint8_t>(field);
    case i8: return in.number<std::int8_t>(field);
    case u16: return in.number<std::uint16_t>(field);
    case i16: return in.number<std::int16_t>(field);
    case u32: return in.number<std::uint32_t>(field);
    case i32: return in.number<std::int32_t>(field);
    case u64: return static_cast<std::int64_t>(in.number<std::uint64_t>(field));
    case i64: return in.number<std::int64_t>(field);
    default: {
      const auto v = in.number<std::uint8_t>(field);
      if (v > 1) in.refuse(field, "expected 0 or 1 for a flag, found " + std::to_string(v));
      return v;
    }
  }
}
double read_real(gguf_reader& in, std::uint32_t type, const std::string& field) {
  return type == f32 ? static_cast<double>(in.number<float>(field)) : in.number<double>(field);
}

gguf_value read_value(gguf_reader& in, const std::string& field) {
  gguf_value v;
  const auto type = in.number<std::uint32_t>(field + ", type");
  if (size_of_value(type) == 0) in.refuse(field, "expected a type of 0 to 12, found " + std::to_string(type));
  if (type == text) {
    v.is = gguf_value::kind::text;
    v.text = in.text(field);
  } else if (is_real(type)) {
    v.is = gguf_value::kind::real;
    v.real = read_real(in, type, field);
  } else if (type != list) {
    v.is = type == boolean ? gguf_value::kind::flag : gguf_value::kind::integer;
    v.integer = read_integer(in, type, field);
  } else {
    const auto element = in.number<std::uint32_t>(field + ", type of elements");
    if (element == list) in.refuse(field, "lists of lists", errc::unsupported);
    if (size_of_value(element) == 0) in.refuse(field, "expected a type of 0 to 12, found " + std::to_string(element));
    const std::uint64_t n = in.count(field + ", number of elements", size_of_value(element));
    v.is = element == text ? gguf_value::kind::texts : gguf_value::kind::numbers;
    if (element == text)
      v.texts.reserve(static_cast<std::size_t>(n));
    else
      v.numbers.reserve(static_cast<std::size_t>(n));
    for (std::uint64_t k = 0; k < n; ++k) {
      if (element == text)
        v.texts.push_back(in.text(field));
      else
        v.numbers.push_back(is_real(element) ? read_real(in, element, field)
                                             : static_cast<double>(read_integer(in, element, field)));
    }
  }
  return v;
}

// A tensor's type by GGML's number.
void set_type(weight_entry& e, std::uint32_t type) {
  constexpr std::pair<std::uint32_t, dtype> plain[] = {{0, dtype::f32},  {1, dtype::f16},  {24, dtype::i8},
                                                       {25, dtype::i16}, {26, dtype::i32}, {27, dtype::i64},
                                                       {28, dtype::f64}, {30, dtype::bf16}};
  constexpr std::pair<std::uint32_t, weight_format> blocks[] = {{2, weight_format::q4_0},
                                                                {8, weight_format::q8_0},
                                                                {12, weight_format::q4_k},
                                                                {13, weight_format::q5_k},
                                                                {14, weight_format::q6_k}};
  constexpr std::string_view names[] = {"F32",     "F16",    "Q4_0",    "Q4_1",  "Q4_2",   "Q4_3",  "Q5_0",  "Q5_1",
                                        "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
                                        "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS"};
  for (const auto& [number, t] : plain)
    if (number == type) return void(e.type = t);
  for (const auto& [number, f] : blocks)
    if (number == type) return void(e.format = f);
  e.fault = "the type " + (type < std::size(names) ? std::string(names[type]) : "of number " + std::to_string(type)) +
            "; kiln reads F32, F16, BF16, Q4_0, Q8_0, Q4_K, Q5_K and Q6_K";
}

constexpr std::uint32_t magic = 0x46554747;  // "GGUF"

}  // namespace

gguf_file::gguf_file(buffer file, std::string_view name, part) : file_(std::move(file)), name_(name) {
  gguf_reader in(file_, name_);
  if (in.number<std::uint32_t>("magic") != magic) in.refuse("magic", "expected \"GGUF\"");
  const auto version = in.number<std::uint32_t>("version");
  if (version != 2 && version != 3)
    in.refuse("version", "expected 2 or 3 in little-endian order, found " + std::to_string(version), errc::unsupported);
  constexpr std::size_t least_tensor = 8 + 4 + 4 + 8, least_value = 8 + 4 + 1;
  const std::uint64_t tensors = in.count("number of tensors", least_tensor);
  const std::uint64_t values = in.count("number of metadata values", least_value);
  for (std::uint64_t k = 0; k < values; ++k) {
    const std::string_view key = in.text("key " + std::to_string(k));
    if (!metadata_.emplace(key, read_value(in, "'" + std::string(key) + "'")).second)
      in.refuse("'" + std::string(key) + "'", "expected the key once, found it twice");
  }
  const std::int64_t alignment = integer("general.alignment").value_or(32);
  if (alignment < 1 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0)
    in.refuse("'general.alignment'", "expected a power of two up to 1048576, found " + std::to_string(alignment));

  std::vector<weight_entry> all;
  std::vector<std::uint64_t> offsets;
  all.reserve(static_cast<std::size_t>(tensors));
  for (std::uint64_t k = 0; k < tensors; ++k) {
    weight_entry e;
    e.name = in.text("name of tensor " + std::to_string(k));
    const std::string field = "tensor '" + e.name + "'";
    const auto rank = in.number<std::uint32_t>(field + ", rank");
    if (rank > 4) in.refuse(field, "expected a rank of at most 4, found " + std::to_string(rank));
    for (std::uint32_t d = 0; d < rank; ++d) {
      const auto extent = in.number<std::uint64_t>(field + ", extents");
      if (extent > std::uint64_t{1} << 48)
        in.refuse(field, "expected an extent of at most 2^48, found " + std::to_string(extent));
      e.extents.insert(e.extents.begin(), static_cast<std::int64_t>(extent));  // the file has the last one first
    }
    set_type(e, in.number<std::uint32_t>(field + ", type"));
    offsets.push_back(in.number<std::uint64_t>(field + ", offset"));
    all.push_back(std::move(e));
  }
  const auto step = static_cast<std::size_t>(alignment);
  const std::size_t begin = (in.place() + step - 1) / step * step;
  for (std::size_t k = 0; k < all.size(); ++k) {
    weight_entry& e = all[k];
    if (!e.fault.empty()) continue;
    const std::string field = "tensor '" + e.name + "'";
    const std::int64_t bytes = stored_bytes(e.format, e.type, e.extents);
    if (bytes < 0)
      in.refuse(field, "expected rows of whole blocks of " + std::to_string(block_of(e.format).numbers) +
                           " numbers and a size of at most 2^63 bytes");
    const std::size_t room = begin > file_.size() ? 0 : file_.size() - begin;
    if (offsets[k] % step != 0 || offsets[k] > room || static_cast<std::uint64_t>(bytes) > room - offsets[k])
      in.refuse(field, "expected " + std::to_string(bytes) + " bytes at a multiple of " + std::to_string(step) +
                           " below " + std::to_string(room) + ", found the offset " + std::to_string(offsets[k]));
    e.bytes = buffer_part(file_, begin + static_cast<std::size_t>(offsets[k]), static_cast<std::size_t>(bytes));
  }
  try {
    weights_ = weight_table(std::move(all));
  } catch (const error& e) {
    throw error(e.code(), name_ + ": " + e.message());
  }
}

gguf_file::gguf_file(buffer file, std::string_view name) : gguf_file(std::move(file), name, part()) {
  if (const auto n = integer("split.count").value_or(1); n > 1)
    throw error(errc::unsupported, name_ + ": 'split.count': expected a model in one file, found a part of " +
                                       std::to_string(n) + ", which are read by their path");
}

error missing_part(const std::filesystem::path& file, std::size_t part) {
  return error(errc::not_found, file.string() + ": expected part " + std::to_string(part + 1) + " of the model's " +
                                    std::to_string(gguf_parts(file).size()) + ", found no file");
}

gguf_file gguf_file::load(const std::filesystem::path& path) {
  const std::vector<std::filesystem::path> files = gguf_parts(path);
  std::vector<weight_entry> all;
  std::optional<gguf_file> out;
  for (std::size_t k = 0; k < files.size(); ++k) {
    const std::string name = files[k].string();
    if (std::error_code none; files.size() > 1 && !std::filesystem::exists(files[k], none))
      throw missing_part(files[k], k);
    gguf_file read(map_file(name), name, part());
    const auto expect = [&](const char* key, std::int64_t otherwise, std::size_t n) {
      const std::int64_t found = read.integer(key).value_or(otherwise);
      if (found != static_cast<std::int64_t>(n))
        throw error(errc::malformed, name + ": '" + key + "': expected " + std::to_string(n) +
                                         ", as the file's name says, found " + std::to_string(found));
    };
    if (const std::int64_t n = read.integer("split.count").value_or(1); files.size() == 1 && n > 1)
      throw error(errc::malformed, name + ": 'split.count': expected a name as NAME-00001-of-00003.gguf of a file " +
                                       "that is one of " + std::to_string(n));
    expect("split.count", 1, files.size());
    expect("split.no", 0, k);
    if (files.size() == 1) return read;
    const auto& own = read.weights_.all();
    all.insert(all.end(), own.begin(), own.end());
    if (k == 0) out.emplace(std::move(read));
  }
  const auto expected = out->integer("split.tensors.count");
  if (expected && *expected != static_cast<std::int64_t>(all.size()))
    throw error(errc::malformed, out->name_ + ": 'split.tensors.count': expected as many tensors as the parts have, " +
                                     std::to_string(all.size()) + ", found " + std::to_string(*expected));
  try {
    out->weights_ = weight_table(std::move(all));
  } catch (const error& e) {
    throw error(e.code(), out->name_ + " and its further parts: " + e.message());
  }
  return std::move(*out);
}

std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& file) {
  constexpr std::string_view form = "-00001-of-00001.gguf";  // five digits of each number
  constexpr std::size_t number = 1, count = 10, digits = 5;
  const std::string name = file.filename().string();
  if (name.size() <= form.size()) return {file};
  const std::string_view end = std::string_view(name).substr(name.size() - form.size());
  for (std::size_t k = 0; k < form.size(); ++k) {
    const bool is_digit = (k >= number && k < number + digits) || (k >= count && k < count + digits);
    if (is_digit ? end[k] < '0' || end[k] > '9' : end[k] != form[k]) return {file};
  }
  const auto number_at = [&](std::size_t at) { return std::stoul(std::string(end.substr(at, digits))); };
  if (number_at(number) < 1 || number_at(number) > number_at(count)) return {file};
  std::vector<std::filesystem::path> out;
  for (std::size_t k = 1; k <= number_at(count); ++k) {
    const std::string text = std::to_string(k);
    const std::size_t at = name.size() - form.size() + number;
    out.push_back(file.parent_path() /
                  (name.substr(0, at) + std::string(digits - text.size(), '0') + text + name.substr(at + digits)));
  }
  return out;
}

const gguf_value* gguf_file::find(std::string_view key) const {
  const auto at = metadata_.find(key);
  return at == metadata_.end() ? nullptr : &at->second;
}

namespace {

[[noreturn]] void refuse_kind(const std::string& name, std::string_view key, const char* expected) {
  throw error(errc::malformed, name + ": '" + std::string(key) + "': expected " + expected);
}

}  // namespace

std::optional<std::int64_t> gguf_file::integer(std::string_view key) const {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  if (v->is != gguf_value::kind::integer && v->is != gguf_value::kind::flag) refuse_kind(name_, key, "a whole number");
  return v->integer;
}
std::optional<double> gguf_file::real(std::string_view key) const {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  if (v->is == gguf_value::kind::integer) return static_cast<double>(v->integer);
  if (v->is != gguf_value::kind::real) refuse_kind(name_, key, "a number");
  return v->real;
}
std::optional<std::string_view> gguf_file::text(std::string_view key) const {
  const gguf_value* v = find(key);
  if (!v) return std::nullopt;
  if (v->is != gguf_value::kind::text) refuse_kind(name_, key, "a text");
  return v->text;
}
const std::vector<std::string_view>& gguf_file::texts(std::string_view key) const {
  static const std::vector<std::string_view> none;
  const gguf_value* v = find(key);
  if (!v) return none;
  if (v->is != gguf_value::kind::texts) refuse_kind(name_, key, "a list of texts");
  return v->texts;
}
const std::vector<double>& gguf_file::numbers(std::string_view key) const {
  static const std::vector<double> none;
  const gguf_value* v = find(key);
  if (!v) return none;
  if (v->is != gguf_value::kind::numbers) refuse_kind(name_, key, "a list of numbers");
  return v->numbers;
}

}  // namespace kiln::language
