#!/usr/bin/env bash
# measure.sh [SOURCE...]: processor seconds and peak MiB of compiling each unit of the corpus with g++ (or CXX), the
# seconds once more for a machine on which four standard headers take 0.5 s, and how many templates clang instantiates
# for it (a count that no other load on the machine changes).
# measure.sh --check: only the counts, against baseline.tsv; fails where one grew by over 3 %.
# measure.sh --counts: prints baseline.tsv anew, for a reviewed change of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# those that take longest come first, so that none is left alone at the end
corpus=(bench/compile/static_resnet50.cpp bench/compile/static_resnet18.cpp bench/compile/static_transformer.cpp
        examples/static_digits.cpp bench/compile/static_perceptron.cpp bench/compile/ops_200.cpp
        bench/compile/ops_100.cpp bench/compile/ops_25.cpp test/hygiene/corpus/builder_and_compile.cpp
        test/hygiene/corpus/kiln_hpp.cpp)
common=(-std=c++20 -ffp-contract=off -march=x86-64-v3 -I include -I .)
gcc_limits=(-fconstexpr-ops-limit=4000000000 -fconstexpr-loop-limit=16777216 -fconstexpr-depth=4096)
clang_limits=(-fconstexpr-steps=2000000000 -fconstexpr-depth=4096 -fbracket-depth=4096)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# instantiations SOURCE: writes the count into the folder. Generating code adds none.
instantiations() {
  local trace=$folder/${1//\//_}
  clang++-16 "${common[@]}" "${clang_limits[@]}" -fsyntax-only "-ftime-trace=$trace.json" -ftime-trace-granularity=0 "$1"
  grep -oE '"Instantiate(Class|Function)"' "$trace.json" | wc -l >"$trace.count"
  rm "$trace.json"
}
count_of() { cat "$folder/${1//\//_}.count"; }
# all of the corpus, as many at once as the machine has processors
count_all() {
  local running=0 source
  for source in "${corpus[@]}"; do
    if [ $running -ge "$(nproc)" ]; then
      wait -n || true
      running=$((running - 1))
    fi
    instantiations "$source" &
    running=$((running + 1))
  done
  wait
}

mode=${1-}
if [ "$mode" = --check ] || [ "$mode" = --counts ]; then
  command -v clang++-16 >/dev/null || { echo "SKIPPED: clang++-16 is missing"; exit 77; }
  count_all
  bad=0
  [ "$mode" = --check ] || printf '# Templates that clang 16 instantiates for each unit. Reviewed: raise none without knowing what made it grow.\n'
  for source in "${corpus[@]}"; do
    [ -s "$folder/${source//\//_}.count" ] || { echo "FAILED: $source does not compile"; bad=1; continue; }
    count=$(count_of "$source")
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
printf '#include <%s>\n' map memory string vector >"$folder/headers.cpp"
printf '%8s %8s %8s %10s\n' seconds scaled MiB templates
for source in "${corpus[@]}"; do
  # the machine's speed now: a virtual one's changes from minute to minute
  /usr/bin/time -f '%U %S' -o "$folder/probe" "$compiler" -std=c++20 -O2 -c "$folder/headers.cpp" -o "$folder/unit.o"
  /usr/bin/time -f '%U %S %M' -o "$folder/time" "$compiler" "${common[@]}" "${limits[@]}" -O2 -c "$source" -o "$folder/unit.o"
  count=-
  command -v clang++-16 >/dev/null && instantiations "$source" && count=$(count_of "$source")
  awk -v source="$source" -v count="$count" -v probe="$(awk '{ print $1 + $2 }' "$folder/probe")" \
    '{ t = $1 + $2; printf "%8.2f %8.2f %8.0f %10s  %s\n", t, t * 0.5 / probe, $3 / 1024, count, source }' "$folder/time"
done
