#pragma once
#include "kiln/runtime/impl/run/compiled_program.hpp"

namespace kiln::detail {

/// The way from an executable to its parts and back.
struct saved_access {
  static const compiled_program& of(const executable& exe) { return *exe.program_; }
  static executable make(std::unique_ptr<const compiled_program> p) { return executable(std::move(p)); }
};

}  // namespace kiln::detail
