#pragma once
#include <span>

#include "kiln/core/error.hpp"
#include "kiln/interface/c/kiln.h"

namespace kiln::c {

/// kiln's code of an error as a status, and back.
kiln_status status_of(errc code);
errc code_of(kiln_status status);

/// Keeps the exception that is being handled as this thread's last error, and gives its status.
kiln_status keep_error() noexcept;

/// What every function of the interface is: runs `body`, and turns what it throws into a status. No exception leaves.
template <class Body> kiln_status guarded(Body&& body) noexcept {
  try {
    body();
    return KILN_OK;
  } catch (...) {
    return keep_error();
  }
}

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

/// A string that the caller gives to kiln_string_destroy.
char* new_string(std::string_view text);

}  // namespace kiln::c
