#!/usr/bin/env bash
# alone.sh COMPILER...: static programs are one translation unit that needs the headers and nothing else, stays within
# the compiler's default limits, and refers neither to kiln's compiled functions nor to an allocation: the example of
# digits, steps that are reference computations (without optimization, which might drop what is not reached), and images
# in NHWC. Units of different instruction sets share none of a program's functions.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c++20 -Wall -Wextra -Werror -ffp-contract=off -fno-exceptions -I "$root/include")
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is missing"; continue; }
  used=$compiler
  for unit in "-O2 examples/static_digits.cpp" "-O0 test/static_program/alone/ops.cpp" "-O1 -DNDEBUG test/static_program/alone/images.cpp"; do
    read -ra how <<<"$unit"
    source=${how[-1]}
    "$compiler" "${flags[@]}" "${how[@]:0:${#how[@]}-1}" -c "$root/$source" -o "$work/unit.o"
    "$compiler" "$work/unit.o" -o "$work/program"
    (cd "$root" && "$work/program")
    if nm -C --undefined-only "$work/program" | grep -E 'kiln|malloc|operator new'; then
      echo "$compiler: $source refers to what it does not need"
      exit 1
    fi
  done
done

# What the linker would take from one unit for both: weak functions of the same name. The last unit above is the first.
"$used" "${flags[@]}" -O1 -DNDEBUG -march=x86-64-v3 -c "$root/test/static_program/alone/images.cpp" -o "$work/wide.o"
for unit in unit wide; do
  nm --defined-only "$work/$unit.o" | awk '$2 ~ /[WV]/ && /aot.*(run|step)/ {print $3}' | sort >"$work/$unit.txt"
done
[ -s "$work/unit.txt" ] || { echo "the unit defines no step"; exit 1; }
if comm -12 "$work/unit.txt" "$work/wide.txt" | c++filt | grep .; then
  echo "units of two instruction sets share functions of a static program"
  exit 1
fi
