#!/usr/bin/env bash
# alone.sh COMPILER...: the static digits example is one translation unit that needs the headers and nothing else, stays
# within the compiler's default limits, and refers neither to kiln's compiled functions nor to an allocation.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is missing"; continue; }
  "$compiler" -std=c++20 -O2 -Wall -Wextra -Werror -ffp-contract=off -fno-exceptions -I "$root/include" \
    "$root/examples/static_digits.cpp" -o "$work/digits"
  (cd "$root" && "$work/digits")
  if nm -C --undefined-only "$work/digits" | grep -E 'kiln|malloc|operator new'; then
    echo "$compiler: the program refers to what it does not need"
    exit 1
  fi
done
