#pragma once
#include <optional>
#include <span>
#include <string>

#include "kiln/core/argument.hpp"

namespace kiln::driver {

/// Parses NumPy's .npy format, versions 1 to 3 (NEP 1): numbers and bools of either byte order and memory order, and
/// what the ml_dtypes package saves: bf16 as V2, numbers of at most eight bits as V1, which `wanted` tells apart.
/// Errors: `malformed`, `unsupported` for other element types, `limit` beyond kiln's rank.
argument parse_npy(std::span<const std::byte> bytes, std::optional<dtype> wanted = {});

/// Reads a .npy file; errors name it. Errors beside those of `parse_npy`: `not_found`, `io`.
argument read_npy(const std::string& path, std::optional<dtype> wanted = {});

}  // namespace kiln::driver
