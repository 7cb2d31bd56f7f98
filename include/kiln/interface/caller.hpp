#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kiln/core/error.hpp"

// What interfaces for C have in common: pointers from the caller, and the errors that they hand out.
namespace kiln::caller {

/// A thread's last error: the whole message, and its parts in the order message, op, instruction, source, expected,
/// found.
struct last_error {
  errc code = errc::internal;
  std::string whole, parts[6];
};

/// The calling thread's; null where no call has failed.
const last_error* find_last_error();
/// Keeps the exception that is being handled as the calling thread's last error; returns its code.
errc keep_last_error() noexcept;

[[noreturn]] void refuse_null(const char* what);

/// A pointer from the caller; null is an `invalid_argument` error that names `what`.
template <class T> T* not_null(T* pointer, const char* what) {
  if (!pointer) refuse_null(what);
  return pointer;
}

/// What it points to.
template <class T> T& given(T* pointer, const char* what) { return *not_null(pointer, what); }

/// An array from the caller as a span; null is such an error, unless there is nothing in it.
template <class T> std::span<T> given_array(T* pointer, std::size_t count, const char* what) {
  if (!pointer && count != 0) refuse_null(what);
  return {pointer, count};
}

/// Writes an output that the caller may leave out.
template <class T, class U> void put(T* to, U&& value) {
  if (to) *to = static_cast<T>(value);
}

/// Frees the process's expressions of dims when the library that holds one is closed, after every other static object
/// of it: it is defined with `gnu::init_priority(101)`.
struct expression_owner {
  ~expression_owner();
};

}  // namespace kiln::caller
