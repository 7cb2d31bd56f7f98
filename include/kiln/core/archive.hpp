#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/core/dimension.hpp"

namespace kiln {

/// Values as bytes of a file: integers of as many bytes as they need (LEB128, signed ones zigzag), text with its
/// length before it, symbolic dimensions as expressions over named symbols, each written out once.
class archive_writer {
 public:
  void put_unsigned(std::uint64_t v);
  void put_signed(std::int64_t v);
  void put_text(std::string_view text);
  void put_dimension(dimension d);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t known_count_ = 0;     // expressions that stand in `bytes_`
  small_vector<std::int64_t> known_;  // by the number of the expression in the process: 1 + its number there, or 0
};

/// Reads what an `archive_writer` wrote. Bytes that end early or hold no such value are a `malformed` error that names
/// `what`.
class archive_reader {
 public:
  archive_reader(std::string_view bytes, std::string what) : rest_(bytes), what_(std::move(what)) {}
  std::uint64_t take_unsigned();
  std::int64_t take_signed();
  std::string_view take_text();
  dimension take_dimension();
  /// A number of elements, each of at least so many bytes: never more than what is left holds, so that memory for them
  /// stays in proportion to the file.
  std::size_t take_count(std::size_t least_bytes = 1);
  /// A number below `end`.
  std::size_t take_index(std::size_t end, std::string_view of);
  bool at_end() const { return rest_.empty(); }
  /// Bytes that are not read yet.
  std::size_t left() const { return rest_.size(); }
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  dimension take_expression(int depth);
  dimension take_dimension(int depth);
  std::string_view rest_;
  std::string what_;
  small_vector<dimension> known_;
};

}  // namespace kiln
