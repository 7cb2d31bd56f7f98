#pragma once
#include <memory>
#include <set>

#include "kiln/generate/impl/families/decoder.hpp"
#include "kiln/generate/impl/weights/stored_blocks.hpp"
#include "kiln/graph/builder.hpp"

namespace kiln::language::detail {

/// The weights of a decoder as values of its program, by their roles.
class decoder_weights {
 public:
  decoder_weights(builder& b, const weight_source& from, const architecture& a);

  /// Whether the file has a tensor of a role; `part` is `weight` or `bias`.
  bool has(std::string_view role, std::int64_t layer = -1, std::string_view part = "weight") const;
  /// A vector f32[n].
  value vector(std::string_view role, std::int64_t layer, std::int64_t n, std::string_view part = "weight");
  /// x[1, rows, inputs] times a matrix, plus its bias if there is one: [1, rows, outputs]. `expert`: of several.
  value product(value x, std::string_view role, std::int64_t layer, std::int64_t inputs, std::int64_t outputs,
                std::int64_t expert = -1);
  /// The outputs of a matrix, by the file.
  std::int64_t outputs(std::string_view role, std::int64_t layer, std::int64_t expert = -1) const;
  /// Rows of a table [rows, width], by i64[1, n]: [1, n, width].
  value rows(value of, std::string_view role, std::int64_t count, std::int64_t width);
  /// The plain numbers of a small tensor; empty where there is none.
  std::vector<float> numbers(std::string_view role) const;
  /// Matrices of products that were stored as `architecture::weights` says, and those that were in blocks already.
  std::size_t narrowed() const { return narrowed_; }
  std::size_t kept() const { return kept_; }

 private:
  const weight_entry* find(std::string_view role, std::int64_t layer, std::string_view part,
                           std::int64_t expert = -1) const;
  weight_entry get(std::string_view role, std::int64_t layer, std::string_view part, std::int64_t expert = -1) const;
  std::vector<std::string> spellings(std::string_view role, std::int64_t layer, std::string_view part,
                                     std::int64_t expert) const;
  row_order order_of(std::string_view role) const;
  value stored(const weight_entry& e, row_order order);
  bool stays(const weight_entry& e) const;
  value in_place(const weight_entry& e, row_order order);
  literal turned(const weight_entry& e, row_order order);
  value narrow(const weight_entry& e, row_order order, bool columns_first);

  builder& build_;
  const weight_source& from_;
  const architecture& a_;
  std::shared_ptr<thread_pool> pool_;
  std::size_t narrowed_ = 0, kept_ = 0;
};

}  // namespace kiln::language::detail
