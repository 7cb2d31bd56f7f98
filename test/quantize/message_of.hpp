#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "kiln/core/error.hpp"

namespace kiln::test {

/// What the error that `f` raises says, perhaps one of this code; "no error" where it raises none.
inline std::string message_of(const std::function<void()>& f, std::optional<errc> code = {}) {
  try {
    f();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code.value_or(e.code())) << e.what();
    return e.what();
  }
  return "no error";
}

}  // namespace kiln::test
