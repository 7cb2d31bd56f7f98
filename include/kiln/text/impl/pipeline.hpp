#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/impl/regex.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// One step of normalization: changes a text, which is valid UTF-8 before and after.
struct normalizer {
  virtual ~normalizer() = default;
  /// `spare` is memory.
  virtual void apply(std::string& text, std::string& spare, regex_memory& memory) const = 0;
};

/// A part of a text, in bytes.
struct piece {
  std::uint32_t begin = 0, end = 0;
  friend bool operator==(const piece&, const piece&) = default;
};

/// A text in pieces, each of which becomes tokens by itself. What lies between two pieces contributes none.
struct split_text {
  std::string_view text;
  std::vector<piece> pieces;
  bool from_start = true;  ///< the first piece begins where the user's text begins

  std::string own;  ///< where `text` is once a step has changed it
  // memory of the steps
  std::string spare;
  std::vector<piece> next;

  void begin(std::string_view whole, bool at_start) {
    text = whole;
    from_start = at_start;
    pieces.clear();
    if (!whole.empty()) pieces.push_back({0, static_cast<std::uint32_t>(whole.size())});
  }
  std::string_view operator[](piece p) const { return text.substr(p.begin, p.end - p.begin); }

  /// Splits each piece: `each(piece, pieces&)` appends its parts, in order; empty ones are left out.
  template <class F> void split_each(F&& each) {
    next.clear();
    for (const piece p : pieces) each(p, next);
    std::erase_if(next, [](piece p) { return p.begin == p.end; });
    settle();
  }
  /// Writes each piece anew: `each(text, is_first, out)` appends to `out`.
  template <class F> void rewrite_each(F&& each) {
    next.clear();
    spare.clear();
    for (const piece p : pieces) {
      const auto begin = static_cast<std::uint32_t>(spare.size());
      each((*this)[p], next.empty(), spare);
      next.push_back({begin, static_cast<std::uint32_t>(spare.size())});
    }
    own.swap(spare);
    text = own;
    settle();
  }

 private:
  void settle() {
    if (!pieces.empty() && !next.empty() && next.front().begin != 0) from_start = false;
    pieces.swap(next);
  }
};

/// One step of pre-tokenization.
struct splitter {
  virtual ~splitter() = default;
  virtual void apply(split_text& text, regex_memory& memory) const = 0;
};

/// What one call of `encode` works in.
struct scratch;

/// What makes tokens of a piece of text.
struct model {
  virtual ~model() = default;
  virtual void encode(std::string_view text, tokens& out, scratch& memory) const = 0;
};

}  // namespace kiln::language::detail
