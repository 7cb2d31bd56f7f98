#pragma once
#include "kiln/interface/c/kiln.h"
#include "kiln/interface/caller.hpp"

namespace kiln::c {

using namespace caller;

/// kiln's code of an error as a status, and back.
kiln_status status_of(errc code);
errc code_of(kiln_status status);

/// What every function of the interface is: runs `body`, and turns what it throws into a status. No exception leaves.
template <class Body> kiln_status guarded(Body&& body) noexcept {
  try {
    body();
    return KILN_OK;
  } catch (...) {
    return status_of(keep_last_error());
  }
}

/// A string that the caller gives to kiln_string_destroy.
char* new_string(std::string_view text);

}  // namespace kiln::c
