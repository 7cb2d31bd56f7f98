#include "kiln/interface/migraphx/shape.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"

namespace kiln::migraphx {

namespace {

struct type_row {
  std::string_view name;
  dtype type;
};
// In the order of type_t. The first two have no dtype; theirs are never read.
constexpr type_row types[type_count] = {
    {"tuple_type", dtype::f32},
    {"fp4x2_type", dtype::f32},
    {"bool_type", dtype::boolean},
    {"half_type", dtype::f16},
    {"float_type", dtype::f32},
    {"double_type", dtype::f64},
    {"uint8_type", dtype::u8},
    {"int8_type", dtype::i8},
    {"uint16_type", dtype::u16},
    {"int16_type", dtype::i16},
    {"int32_type", dtype::i32},
    {"int64_type", dtype::i64},
    {"uint32_type", dtype::u32},
    {"uint64_type", dtype::u64},
    {"fp8e4m3fnuz_type", dtype::f8e4m3fnuz},
    {"fp8e4m3fn_type", dtype::f8e4m3fn},
    {"fp8e5m2_type", dtype::f8e5m2},
    {"bf16_type", dtype::bf16},
    {"fp8e5m2fnuz_type", dtype::f8e5m2fnuz},
};
constexpr std::size_t types_without_dtype = 2;

[[noreturn]] void refuse_size() { raise(errc::limit, "the elements and bytes of a shape are counted in 64 bits"); }
std::size_t product(std::size_t a, std::size_t b) {
  std::size_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) refuse_size();
  return out;
}
std::size_t sum(std::size_t a, std::size_t b) {
  std::size_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) refuse_size();
  return out;
}

std::vector<std::size_t> row_major_strides(const std::vector<std::size_t>& lens) {
  std::vector<std::size_t> out(lens.size());
  std::size_t step = 1;
  for (std::size_t i = lens.size(); i-- > 0;) {
    out[i] = step;
    step = product(step, std::max<std::size_t>(lens[i], 1));
  }
  return out;
}

std::string list_text(const std::vector<std::size_t>& v) {
  std::string out = "{";
  for (const std::size_t x : v) out.append(out.size() > 1 ? ", " : "").append(std::to_string(x));
  return out + "}";
}

}  // namespace

std::string_view to_string(type_t t) { return types[static_cast<std::size_t>(t)].name; }

type_t type_named(std::string_view name) {
  std::string all;
  for (std::size_t i = 0; i < type_count; ++i) {
    const std::string_view known = types[i].name, brief = known.substr(0, known.size() - 5);
    if (name == known || name == brief) return static_cast<type_t>(i);
    all.append(all.empty() ? "" : ", ").append(known);
  }
  raise(errc::invalid_argument, "an element type is one of " + all + ": found '" + std::string(name) + "'");
}

type_t checked_type(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(type_count))
    raise(fault::of(errc::invalid_argument, "number of an element type", "0 to 18", number));
  return static_cast<type_t>(number);
}

dtype dtype_of_type(type_t t) {
  if (static_cast<std::size_t>(t) < types_without_dtype)
    raise(fault::of(errc::unsupported, "element type of a tensor", "a number or bool", to_string(t)));
  return types[static_cast<std::size_t>(t)].type;
}

type_t type_of_dtype(dtype t) {
  for (std::size_t i = types_without_dtype; i < type_count; ++i)
    if (types[i].type == t) return static_cast<type_t>(i);
  if (t == dtype::i4 || t == dtype::i2) return type_t::int8_type;
  if (t == dtype::u4 || t == dtype::u2) return type_t::uint8_type;
  raise(fault::of(errc::unsupported, "element type that MIGraphX has a name for", "a number or bool", t));
}

dynamic_dimension checked_range(dynamic_dimension d) {
  if (d.min > d.max)
    raise(fault::of(errc::invalid_argument, "the least extent of a range is not above the greatest", d.max, d.min));
  return d;
}

shape::shape(type_t type) : type_(type), lens_{1}, strides_{0} {}

shape::shape(type_t type, std::vector<std::size_t> lens)
    : type_(type), lens_(std::move(lens)), strides_(row_major_strides(lens_)) {
  (void)bytes();
}

shape::shape(type_t type, std::vector<std::size_t> lens, std::vector<std::size_t> strides)
    : type_(type), lens_(std::move(lens)), strides_(std::move(strides)) {
  if (lens_.size() != strides_.size())
    raise(fault::of(errc::invalid_argument, "a shape has a stride for each extent", lens_.size(), strides_.size()));
  (void)elements(), (void)bytes();
}

shape::shape(type_t type, std::vector<dynamic_dimension> dims) : type_(type), dims_(std::move(dims)) {
  for (const dynamic_dimension& d : dims_) (void)checked_range(d);
  if (dims_.empty()) *this = shape(type);
}

shape shape::permuted(type_t type, std::vector<std::size_t> lens, const std::vector<std::int64_t>& permutation) {
  std::vector<std::size_t> inner(permutation.size()), strides(lens.size());
  std::vector<bool> seen(lens.size());
  if (permutation.size() != lens.size())
    raise(fault::of(errc::invalid_argument, "a permutation has a number for each extent", lens.size(),
                    permutation.size()));
  for (std::size_t i = 0; i < inner.size(); ++i) {
    const std::int64_t at = permutation[i];
    if (at < 0 || at >= static_cast<std::int64_t>(lens.size()) || seen[static_cast<std::size_t>(at)])
      raise(fault::of(errc::invalid_argument, "a permutation has each axis once", lens.size(), at));
    seen[static_cast<std::size_t>(at)] = true;
    inner[i] = lens[static_cast<std::size_t>(at)];
  }
  const std::vector<std::size_t> steps = row_major_strides(inner);
  for (std::size_t i = 0; i < inner.size(); ++i) strides[static_cast<std::size_t>(permutation[i])] = steps[i];
  return {type, std::move(lens), std::move(strides)};
}

shape shape::tuple(std::vector<shape> parts) {
  shape out;
  out.type_ = type_t::tuple_type;
  out.parts_ = std::move(parts);
  return out;
}

void shape::require_static(std::string_view what) const {
  if (dynamic())
    raise(errc::invalid_argument, std::string(what) + " of a shape that is not dynamic: found " + to_string(*this));
}

const std::vector<std::size_t>& shape::lens() const {
  require_static("extents are asked");
  return lens_;
}
const std::vector<std::size_t>& shape::strides() const {
  require_static("strides are asked");
  return strides_;
}

std::vector<dynamic_dimension> shape::dyn_dims() const {
  if (dynamic()) return dims_;
  std::vector<dynamic_dimension> out;
  for (const std::size_t n : lens_) out.push_back({n, n, {}});
  return out;
}

std::size_t shape::elements() const {
  require_static("elements are asked");
  if (lens_.empty()) return 0;
  std::size_t out = 1;
  for (const std::size_t n : lens_) out = product(out, n);
  return out;
}

std::size_t shape::element_space() const {
  if (lens_.empty()) return 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < lens_.size(); ++i) {
    if (lens_[i] == 0) return 0;
    last = sum(last, product(lens_[i] - 1, strides_[i]));
  }
  return sum(last, 1);
}

std::size_t shape::type_size() const {
  return type_ == type_t::tuple_type ? 0 : type_ == type_t::fp4x2_type ? 1 : size_of(dtype_of_type(type_));
}

std::size_t shape::bytes() const {
  std::size_t out = 0;
  for (const shape& s : parts_) out = sum(out, s.bytes());
  if (dynamic()) {  // of the greatest extents
    out = type_size();
    for (const dynamic_dimension& d : dims_)
      if (__builtin_mul_overflow(out, d.max, &out)) return static_cast<std::size_t>(-1);
    return out;
  }
  return sum(out, product(element_space(), type_size()));
}

bool shape::packed() const { return parts_.empty() && !dynamic() && elements() == element_space(); }

bool shape::transposed() const {
  if (!parts_.empty() || dynamic()) return false;
  std::size_t last = static_cast<std::size_t>(-1);
  for (std::size_t i = 0; i < lens_.size(); ++i) {
    if (strides_[i] == 0) continue;
    if (strides_[i] > last) return true;
    last = strides_[i];
  }
  return false;
}

bool shape::broadcasted() const {
  return parts_.empty() && !dynamic() && std::find(strides_.begin(), strides_.end(), 0u) != strides_.end();
}

bool shape::scalar() const {
  return parts_.empty() && !dynamic() &&
         std::all_of(strides_.begin(), strides_.end(), [](std::size_t s) { return s == 0; });
}

bool shape::standard() const {
  return parts_.empty() && !dynamic() && packed() && !transposed() && (!broadcasted() || elements() == 1);
}

std::size_t shape::index(std::size_t i) const {
  require_static("a place is asked");
  const std::size_t count = elements();
  if (i >= count) raise(fault::of(errc::invalid_argument, "an index lies within the elements", count, i));
  std::size_t out = 0;
  for (std::size_t d = lens_.size(); d-- > 0;) {
    out += i % lens_[d] * strides_[d];
    i /= lens_[d];
  }
  return out;
}

std::string to_string(const shape& s) {
  std::string out(to_string(s.type()));
  if (s.type() == type_t::tuple_type) {
    for (const shape& part : s.parts()) out += ", [" + to_string(part) + "]";
    return out;
  }
  if (!s.dynamic()) return out + ", " + list_text(s.lens()) + ", " + list_text(s.strides());
  out += ", {";
  bool first = true;
  for (const dynamic_dimension& d : s.dyn_dims()) {
    out += (first ? "[" : ", [") + std::to_string(d.min) + ", " + std::to_string(d.max) + "]";
    first = false;
  }
  return out + "}";
}

kiln::shape to_kiln(const shape& s, std::string_view name) {
  kiln::shape out;
  out.type = dtype_of_type(s.type());
  if (s.ndim() > max_rank) raise(fault::of(errc::limit, "rank of a tensor", max_rank, s.ndim()));
  static constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max() >> 16);
  const auto extent = [](std::size_t n) {
    if (n > most) raise(fault::of(errc::limit, "an extent", most, n));
    return static_cast<std::int64_t>(n);
  };
  if (s.dynamic()) {
    for (const dynamic_dimension& d : s.dyn_dims())
      out.lens.push_back(d.is_fixed()
                             ? dimension(extent(d.min))
                             : dimension::symbol(std::string(name) + "." + std::to_string(out.lens.size()),
                                                 extent(d.min), static_cast<std::int64_t>(std::min(d.max, most))));
    return out;
  }
  for (const std::size_t n : s.lens()) out.lens.push_back(extent(n));
  if (!s.standard())
    for (const std::size_t n : s.strides()) out.strides.push_back(extent(n));
  return out;
}

shape from_kiln(const kiln::shape& s) {
  const type_t type = type_of_dtype(s.type);
  if (s.rank() == 0) return shape(type);
  if (s.is_constant()) {
    std::vector<std::size_t> lens, strides;
    for (const dimension d : s.lens) lens.push_back(static_cast<std::size_t>(d.value()));
    if (s.standard()) return {type, std::move(lens)};
    for (const dimension d : s.strides) strides.push_back(static_cast<std::size_t>(d.value()));
    return {type, std::move(lens), std::move(strides)};
  }
  std::vector<dynamic_dimension> dims;
  for (const dimension d : s.lens)
    dims.push_back({static_cast<std::size_t>(std::max<std::int64_t>(d.min(), 0)),
                    static_cast<std::size_t>(std::max<std::int64_t>(d.max(), 0)),
                    {}});
  return {type, std::move(dims)};
}

}  // namespace kiln::migraphx
