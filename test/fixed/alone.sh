#!/usr/bin/env bash
# alone.sh COMPILER...: static programs are one translation unit that needs the headers and nothing else, stays within
# the compiler's default limits, and refers neither to kiln's compiled functions nor to an allocation: the example of
# digits, and steps that are reference computations (without optimisation, which might drop what is not reached).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is missing"; continue; }
  for unit in "-O2 examples/static_digits.cpp" "-O0 test/fixed/alone/ops.cpp"; do
    "$compiler" -std=c++20 "${unit%% *}" -Wall -Wextra -Werror -ffp-contract=off -fno-exceptions -I "$root/include" \
      "$root/${unit#* }" -o "$work/program"
    (cd "$root" && "$work/program")
    if nm -C --undefined-only "$work/program" | grep -E 'kiln|malloc|operator new'; then
      echo "$compiler: ${unit#* } refers to what it does not need"
      exit 1
    fi
  done
done
