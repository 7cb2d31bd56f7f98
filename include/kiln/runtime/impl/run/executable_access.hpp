#pragma once
#include "kiln/runtime/impl/run/compiled_program.hpp"

namespace kiln::detail {

/// The way from an executable to its parts and back.
struct executable_access {
  static const compiled_program& of(const executable& exe) { return *exe.program_; }
  /// Of an executable that nobody runs yet.
  static void remark(executable& exe, std::string text) {
    const_cast<compiled_program&>(*exe.program_).report.remarks.push_back(std::move(text));
  }
  static executable make(std::unique_ptr<const compiled_program> p) { return executable(std::move(p)); }
};

}  // namespace kiln::detail
