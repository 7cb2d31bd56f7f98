#pragma once
#include <filesystem>

#include "kiln/core/argument.hpp"
#include "kiln/interface/migraphx/shape.hpp"

namespace kiln::migraphx {

/// Elements with a shape: owned, or borrowed from the caller; or the arguments in a tuple.
class argument {
 public:
  argument() = default;
  /// Owns memory of zeros.
  explicit argument(const shape& s);
  /// Borrows the caller's memory.
  argument(const shape& s, void* data);
  /// Shows what kiln computed.
  explicit argument(kiln::argument value);
  /// The same under another shape of as many bytes.
  argument(const shape& s, kiln::argument value) : shape_(s), value_(std::move(value)) {}
  static argument tuple(std::vector<argument> parts);

  const shape& get_shape() const { return shape_; }
  char* data() const { return reinterpret_cast<char*>(const_cast<std::byte*>(value_.data())); }
  const kiln::argument& value() const { return value_; }
  const std::vector<argument>& parts() const { return parts_; }

  /// Equal shapes and elements, wherever they are in memory.
  friend bool operator==(const argument& a, const argument& b);

 private:
  shape shape_;
  kiln::argument value_;
  std::vector<argument> parts_;
};

/// Numbers that follow from the seed alone: floats in [-1, 1), small integers, bools.
argument generate_argument(const shape& s, std::size_t seed = 0);
/// The value in every element.
argument fill_argument(const shape& s, double value);

/// Writes and reads shape and elements as MessagePack. Errors: `io`, `malformed`.
void save_argument(const argument& a, const std::filesystem::path& file);
argument load_argument(const std::filesystem::path& file);

}  // namespace kiln::migraphx
