#pragma once

#include <compare>

/// Major, minor and patch number of this kiln; CMake reads the project's version from here.
#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

namespace kiln {

/// A release of kiln, ordered by its numbers.
struct version_number {
  int major_number = 0;
  int minor_number = 0;
  int patch_number = 0;

  friend constexpr auto operator<=>(const version_number&, const version_number&) = default;
};

/// The release these headers belong to.
inline constexpr version_number version{KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH};

/// The same release as text, for instance "0.1.0".
inline constexpr const char* version_text = "0.1.0";

}  // namespace kiln
