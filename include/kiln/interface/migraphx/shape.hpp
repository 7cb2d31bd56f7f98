#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/shape.hpp"

// MIGraphX's words over kiln's objects: what its C, C++ and Python interfaces have in common.
namespace kiln::migraphx {

/// MIGraphX's element types, in the order of its C interface.
enum class type_t : std::uint8_t {
  tuple_type,
  fp4x2_type,
  bool_type,
  half_type,
  float_type,
  double_type,
  uint8_type,
  int8_type,
  uint16_type,
  int16_type,
  int32_type,
  int64_type,
  uint32_type,
  uint64_type,
  fp8e4m3fnuz_type,
  fp8e4m3fn_type,
  fp8e5m2_type,
  bf16_type,
  fp8e5m2fnuz_type
};
inline constexpr std::size_t type_count = 19;

/// MIGraphX's name of a type: "float_type".
std::string_view to_string(type_t t);
/// The type of that name, with or without "_type"; another is an `invalid_argument` error that lists all.
type_t type_named(std::string_view name);
/// The type of that number; another is an `invalid_argument` error.
type_t checked_type(std::int64_t number);
/// kiln's dtype; a tuple and packed 4-bit floats have none, which is an `unsupported` error.
dtype dtype_of_type(type_t t);
/// MIGraphX's type of a dtype; one that it has no name for is an `unsupported` error.
type_t type_of_dtype(dtype t);

/// An extent that a run binds to a number in [min, max]; optimals are the numbers it will mostly be.
struct dynamic_dimension {
  std::size_t min = 0, max = 0;
  std::set<std::size_t> optimals{};
  bool is_fixed() const { return min == max; }
  friend bool operator==(const dynamic_dimension&, const dynamic_dimension&) = default;
};

/// The range; one with min above max is an `invalid_argument` error.
dynamic_dimension checked_range(dynamic_dimension d);

/// Element type, extents and strides in elements; or ranges of extents; or the shapes in a tuple.
class shape {
 public:
  /// Nothing: f32 without elements of its own.
  shape() = default;
  /// One element: extents {1}, strides {0}.
  explicit shape(type_t type);
  /// Row-major extents. More elements or bytes than 64 bits count are a `limit` error, with strides too.
  shape(type_t type, std::vector<std::size_t> lens);
  shape(type_t type, std::initializer_list<std::size_t> lens) : shape(type, std::vector<std::size_t>(lens)) {}
  /// Another number of strides than of extents is an `invalid_argument` error.
  shape(type_t type, std::vector<std::size_t> lens, std::vector<std::size_t> strides);
  /// A range with min above max is an `invalid_argument` error.
  shape(type_t type, std::vector<dynamic_dimension> dims);
  /// Extents whose dims stand in memory in the order that the permutation says.
  static shape permuted(type_t type, std::vector<std::size_t> lens, const std::vector<std::int64_t>& permutation);
  static shape tuple(std::vector<shape> parts);

  type_t type() const { return type_; }
  /// Extents; of a dynamic shape they are an `invalid_argument` error, as are its strides.
  const std::vector<std::size_t>& lens() const;
  const std::vector<std::size_t>& strides() const;
  /// Ranges, also of constant extents.
  std::vector<dynamic_dimension> dyn_dims() const;
  const std::vector<shape>& parts() const { return parts_; }
  std::size_t ndim() const { return dynamic() ? dims_.size() : lens_.size(); }
  std::size_t elements() const;
  /// Bytes from the first element to the last.
  std::size_t bytes() const;
  std::size_t type_size() const;

  bool dynamic() const { return !dims_.empty(); }
  bool packed() const;
  bool transposed() const;
  bool broadcasted() const;
  bool standard() const;
  bool scalar() const;
  /// Where element i, counted in row-major order, is; outside the shape an `invalid_argument` error.
  std::size_t index(std::size_t i) const;

  friend bool operator==(const shape&, const shape&) = default;

 private:
  std::size_t element_space() const;
  void require_static(std::string_view what) const;
  type_t type_ = type_t::float_type;
  std::vector<std::size_t> lens_, strides_;
  std::vector<dynamic_dimension> dims_;
  std::vector<shape> parts_;
};

/// "float_type, {2, 3}, {3, 1}".
std::string to_string(const shape& s);

/// kiln's shape: dynamic extents become symbols `name.axis`, others keep their strides.
kiln::shape to_kiln(const shape& s, std::string_view name);
/// The shape of a value of kiln's: rank 0 is one element with stride 0, symbolic extents are ranges.
shape from_kiln(const kiln::shape& s);

}  // namespace kiln::migraphx
