#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kiln/core/inline_string.hpp"

namespace kiln {

/// What kind of thing went wrong.
enum class errc : std::uint8_t {
  invalid_argument,  ///< a call's argument breaks its contract
  shape_mismatch,    ///< dims, rank or dtype break an op's shape rule
  unsupported,       ///< valid, but outside what this op, target or importer covers
  not_found,         ///< a name, file or key that does not exist
  malformed,         ///< input data that breaks its own format
  io,                ///< the operating system refused a read or write
  limit,             ///< a stated size or nesting limit is exceeded
  canceled,          ///< the caller asked a run to stop
  internal,          ///< kiln broke its own invariant
};

/// The code's name as printed in messages.
constexpr std::string_view to_string(errc code) {
  constexpr std::string_view names[] = {"invalid argument", "shape mismatch", "unsupported",
                                        "not found",        "malformed",      "i/o error",
                                        "limit exceeded",   "canceled",       "internal error"};
  return names[static_cast<unsigned>(code)];
}

/// A broken rule as a value: a literal type, so that shape rules can return it during constant evaluation.
struct fault {
  errc code = errc::internal;
  inline_string<95> rule;      ///< what must hold, in the user's words
  inline_string<95> expected;  ///< the value the rule asks for
  inline_string<95> found;     ///< the value that stood there

  template <class Expected, class Found>
  static constexpr fault of(errc code, std::string_view rule, const Expected& expected, const Found& found) {
    fault f;
    f.code = code;
    f.rule.append(rule);
    put(f.expected, expected);
    put(f.found, found);
    return f;
  }
  static constexpr fault of(errc code, std::string_view rule) {
    fault f;
    f.code = code;
    f.rule.append(rule);
    return f;
  }

 private:
  template <class V> static constexpr void put(inline_string<95>& out, const V& value) {
    if constexpr (std::is_convertible_v<const V&, std::string_view>)
      out.append(std::string_view(value));
    else if constexpr (std::is_integral_v<V>)
      out.append(static_cast<std::int64_t>(value));
    else
      put_text(out, value);  // found by argument-dependent lookup: dims, dtype, shape
  }
};

/// What kiln throws: a fault with the places that lead to it. `what()` is the whole message.
class error : public std::exception {
 public:
  error(errc code, std::string message) : code_(code), message_(std::move(message)) { compose(); }
  explicit error(const fault& f);

  errc code() const noexcept { return code_; }
  const char* what() const noexcept override { return whole_.c_str(); }
  /// The message without the places.
  const std::string& message() const noexcept { return message_; }
  const std::string& op() const noexcept { return op_; }
  const std::string& instruction() const noexcept { return instruction_; }
  const std::string& source() const noexcept { return source_; }
  const std::string& expected() const noexcept { return expected_; }
  const std::string& found() const noexcept { return found_; }

  /// Adds a place where none is known yet: the op's name, the instruction's name, the source (ONNX node, file, line).
  error& at_op(std::string_view name);
  error& at_instruction(std::string_view name);
  error& at_source(std::string_view place);

 private:
  void compose();
  errc code_;
  std::string message_, op_, instruction_, source_, expected_, found_, whole_;
};

/// Throws `error` with the fault; during constant evaluation this call is the diagnostic.
[[noreturn]] void raise(const fault& f);
/// Throws `error` with a composed message.
[[noreturn]] void raise(errc code, std::string message);

/// Either a value or the fault that prevented it.
template <class T> class [[nodiscard]] result {
 public:
  constexpr result(T value) : value_(std::move(value)), ok_(true) {}
  constexpr result(const fault& f) : fault_(f) {}
  constexpr explicit operator bool() const { return ok_; }
  constexpr T& operator*() { return value_; }
  constexpr const T& operator*() const { return value_; }
  constexpr const T* operator->() const { return &value_; }
  constexpr T* operator->() { return &value_; }
  constexpr const fault& why() const { return fault_; }
  /// The value; raises the fault where there is none.
  constexpr const T& value() const {
    if (!ok_) raise(fault_);
    return value_;
  }

 private:
  T value_{};
  fault fault_{};
  bool ok_ = false;
};

}  // namespace kiln
