#!/usr/bin/env bash
# measure.sh [SOURCE...]: processor seconds and peak MiB of compiling each unit of the corpus with g++, and how many
# templates clang instantiates for it (a count that no other load on the machine changes).
# measure.sh --check: only the counts, against baseline.tsv; fails where one grew by over 3 %.
# measure.sh --counts: prints baseline.tsv anew, for a reviewed change of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

corpus=(test/hygiene/corpus/kiln_hpp.cpp test/hygiene/corpus/builder_and_compile.cpp
        bench/compile/ops_25.cpp bench/compile/ops_100.cpp bench/compile/ops_200.cpp
        bench/compile/static_perceptron.cpp examples/static_digits.cpp bench/compile/static_transformer.cpp
        bench/compile/static_resnet18.cpp bench/compile/static_resnet50.cpp)
common=(-std=c++20 -ffp-contract=off -march=x86-64-v3 -I include -I .)
gcc_limits=(-fconstexpr-ops-limit=4000000000 -fconstexpr-loop-limit=16777216 -fconstexpr-depth=4096)
clang_limits=(-fconstexpr-steps=2000000000 -fconstexpr-depth=4096 -fbracket-depth=4096)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

instantiations() {
  clang++-16 "${common[@]}" "${clang_limits[@]}" -O0 -c "$1" -o "$folder/unit.o" -ftime-trace -ftime-trace-granularity=0
  grep -oE '"Instantiate(Class|Function)"' "$folder/unit.json" | wc -l
}

mode=${1-}
if [ "$mode" = --check ] || [ "$mode" = --counts ]; then
  command -v clang++-16 >/dev/null || { echo "SKIPPED: clang++-16 is missing"; exit 77; }
  bad=0
  [ "$mode" = --check ] || printf '# Templates that clang 16 instantiates for each unit.\n'
  for source in "${corpus[@]}"; do
    count=$(instantiations "$source")
    if [ "$mode" = --counts ]; then
      printf '%s\t%s\n' "$count" "$source"
      continue
    fi
    known=$(awk -F'\t' -v source="$source" '$2 == source { print $1 }' bench/compile/baseline.tsv)
    if [ -z "$known" ] || [ $((count * 100)) -gt $((known * 103)) ]; then
      echo "GREW $count templates, ${known:-none} in the baseline: $source"
      bad=1
    else
      echo "ok   $count templates, $known in the baseline: $source"
    fi
  done
  exit $bad
fi

[ $# -gt 0 ] && corpus=("$@")
compiler=${CXX:-g++}
limits=("${gcc_limits[@]}")
"$compiler" --version | grep -q clang && limits=("${clang_limits[@]}")
printf '%8s %8s %12s\n' seconds MiB templates
for source in "${corpus[@]}"; do
  /usr/bin/time -f '%U %S %M' -o "$folder/time" "$compiler" "${common[@]}" "${limits[@]}" -O2 -c "$source" -o "$folder/unit.o"
  count=-
  command -v clang++-16 >/dev/null && count=$(instantiations "$source")
  awk -v source="$source" -v count="$count" '{ printf "%8.2f %8.0f %12s  %s\n", $1 + $2, $3 / 1024, count, source }' "$folder/time"
done
