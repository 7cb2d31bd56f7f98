#!/usr/bin/env bash
# tidy.sh: clang-tidy finds nothing in the public headers; the root's .clang-tidy lists the checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tool=clang-tidy-16
command -v $tool >/dev/null || { echo "SKIPPED: $tool is missing"; exit 77; }
unit=$(mktemp --suffix=.cpp)
trap 'rm -f "$unit"' EXIT
# Headers of one instruction set or of the device are compiled elsewhere, one at a time.
(cd include && find kiln -name '*.hpp' | grep -vE '/impl/|/kernels/|core/simd/|kernel/amx/|kiln/eigen.hpp') | sort |
  sed 's/.*/#include "&"/' >"$unit"
echo "$(wc -l <"$unit") headers"
# shellcheck disable=SC2046
$tool --quiet --config-file=.clang-tidy "$unit" -- -std=c++20 -I include -I include/kiln/interface/migraphx/include \
  $(pkg-config --cflags python3 | sed 's/-I/-isystem /g') -Wno-psabi 2>/dev/null
