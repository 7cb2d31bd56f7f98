#pragma once
#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "kiln/core/argument.hpp"

namespace kiln {

/// What an element of dtype string, sequence, optional, map, c64 or c128 names. Immutable and shared: an element is the
/// object's address (null: the empty string, sequence, optional or map, or zero), and every argument that owns its data
/// also owns what its elements name.
class object : public std::enable_shared_from_this<object> {
 public:
  virtual ~object() = default;
  /// Equality of what two objects of one kind hold.
  virtual bool equals(const object& other) const = 0;
  /// Whether it means the same as a null handle.
  virtual bool is_empty() const { return false; }
};
using object_handle = const object*;
using object_pointer = std::shared_ptr<const object>;

/// An element of a string tensor: bytes, by ONNX's rule UTF-8.
struct text_object final : object {
  std::string value;
  explicit text_object(std::string v) : value(std::move(v)) {}
  bool equals(const object& other) const override;
  bool is_empty() const override { return value.empty(); }
};

/// A list of values of one type, which need not have one shape.
struct sequence_object final : object {
  std::vector<argument> items;
  explicit sequence_object(std::vector<argument> v) : items(std::move(v)) {}
  bool equals(const object& other) const override;
  bool is_empty() const override { return items.empty(); }
};

/// A value that is there; an optional without one is a null handle.
struct optional_object final : object {
  argument value;
  explicit optional_object(argument v) : value(std::move(v)) {}
  bool equals(const object& other) const override;
};

/// Values by keys, in the order of the keys. Integers of every type are held as i64.
struct map_object final : object {
  argument keys;  ///< i64 or strings of rank 1, each once
  std::vector<argument> values;
  map_object(argument k, std::vector<argument> v) : keys(std::move(k)), values(std::move(v)) {}
  bool equals(const object& other) const override;
  bool is_empty() const override { return values.empty(); }
};

/// An element of a complex tensor; of dtype c64, both parts are values of float.
struct complex_object final : object {
  std::complex<double> value;
  explicit complex_object(std::complex<double> v) : value(v) {}
  bool equals(const object& other) const override;
  bool is_empty() const override { return equals(complex_object(0)); }
};

/// An argument that owns its elements' objects, in row-major order.
argument object_argument(dtype type, const dims& lens, const std::vector<object_pointer>& elements);
/// A string tensor.
argument string_argument(const dims& lens, std::span<const std::string> elements);
/// A sequence as a rank 0 tensor of one element; its items own their data.
argument sequence_argument(std::vector<argument> items);
/// An optional that holds a value, or an empty one.
argument optional_argument(argument value);
argument empty_optional();
/// A map as a rank 0 tensor of one element. A value for each key, keys of i64 or strings; a key that occurs twice is an
/// `invalid_argument` error.
argument map_argument(const argument& keys, std::vector<argument> values);
/// A tensor of c64 or c128.
argument complex_argument(dtype type, const dims& lens, std::span<const std::complex<double>> elements);

/// The elements of a string tensor, row-major; another dtype is an `invalid_argument` error.
std::vector<std::string> strings_of(const argument& a);
/// The items of a rank 0 sequence.
const std::vector<argument>& items_of(const argument& a);
/// The value of a rank 0 optional, null where it is empty.
const argument* value_of_optional(const argument& a);
/// What a rank 0 map holds.
const map_object& entries_of(const argument& a);
/// The elements of a complex tensor, row-major; another dtype is an `invalid_argument` error.
std::vector<std::complex<double>> complexes_of(const argument& a);

/// Row-major handles as an argument that owns what they name.
argument retained(const shape& s, const std::byte* handles);
/// Equality of dtype, extents and elements; objects are compared by what they hold.
bool equal_values(const argument& a, const argument& b);

}  // namespace kiln
