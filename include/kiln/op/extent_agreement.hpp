#pragma once
#include "kiln/core/dimension.hpp"

namespace kiln {

/// Which extents of its operands an op needs equal: an op that states them in `agree(extent_agreement&)` takes operands
/// whose dims have other names, since the builder restates these and the run compares them. What is not met after that
/// is the shape rule's to report.
class extent_agreement {
 public:
  explicit extent_agreement(small_vector<dims> operands) : wanted_(std::move(operands)) {}

  std::size_t operands() const { return wanted_.size(); }
  std::size_t rank(std::size_t operand) const { return wanted_[operand].size(); }
  dimension extent(std::size_t operand, std::size_t d) const { return wanted_[operand][d]; }
  const dims& wanted(std::size_t operand) const { return wanted_[operand]; }

  /// An extent is this one, unless it certainly is another.
  void want(std::size_t operand, std::size_t d, dimension extent) {
    dimension& own = wanted_[operand][d];
    if (!(own == extent) && !same(own, extent)) own = extent;
  }
  /// Two extents are one: a number rather than a name.
  void agree(std::size_t operand, std::size_t d, std::size_t other, std::size_t e) {
    if (extent(operand, d).is_constant())
      want(other, e, extent(operand, d));
    else
      want(operand, d, extent(other, e));
  }

 private:
  small_vector<dims> wanted_;
};

}  // namespace kiln
