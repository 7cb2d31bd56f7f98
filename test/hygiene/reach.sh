#!/usr/bin/env bash
# reach.sh COMPILER: kiln.hpp reaches no protobuf, Eigen, HIP, <iostream> or <regex>.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

reached=$("${1:-g++}" -std=c++20 -M -I include include/kiln/kiln.hpp | tr -s ' \\' '\n')
echo "kiln.hpp reaches $(grep -c . <<<"$reached") files, $(grep -c ' *include/kiln/' <<<"$reached") of them kiln's own"
if grep -E 'google/protobuf|\.pb\.h$|/Eigen/|/hip/|/(iostream|regex)$' <<<"$reached"; then
  echo "kiln.hpp must not reach these"
  exit 1
fi
