#!/usr/bin/env bash
# lone_headers.sh COMPILER STAMPS [FOLDER...]: every public header (of these folders of kiln, and those beside them)
# compiles alone. STAMPS is a folder that remembers, so that a header is compiled again only after something it includes
# has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ "${1:-}" = --one ]; then
  compiler=$2 stamps=$3 header=$4
  stamp=$stamps/${header//\//_}
  if [ -f "$stamp.d" ] && [ -f "$stamp.ok" ]; then
    stale=$(sed -e 's/^[^:]*: *//' -e 's/ *\\$//' "$stamp.d" | tr -s ' ' '\n' | while read -r file; do
      [ -z "$file" ] || { [ -f "$file" ] && [ ! "$file" -nt "$stamp.ok" ]; } || echo stale
    done)
    [ -n "$stale" ] || { echo "same      $header"; exit; }
  fi
  rm -f "$stamp.ok"
  touch "$stamp.begun"
  # A header of one instruction set is alone with that set.
  case $header in
    */avx512*) level=-march=x86-64-v4 ;;
    */avx2*) level=-march=x86-64-v3 ;;
    *) level= ;;
  esac
  begun=$EPOCHREALTIME
  package=
  case $header in
    kiln/eigen.hpp) package=eigen3 ;;
    */python*) package=python3 ;;
  esac
  [ -z "$package" ] || package="$(pkg-config --cflags "$package" | sed 's/-I/-isystem /g') -fvisibility=hidden"
  # shellcheck disable=SC2086
  if errors=$("$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -ffp-contract=off $level $package -I include \
    -I include/kiln/interface/migraphx/include -I include/kiln/interface/onnxruntime/shim/include -I include/kiln/interface/genai/include \
    -MMD -MF "$stamp.d" -x c++ - <<<"#include <$header>" 2>&1); then
    mv "$stamp.begun" "$stamp.ok"
    awk -v a="$begun" -v b="$EPOCHREALTIME" -v header="$header" 'BEGIN { printf "ok %6.2f %s\n", b - a, header }'
  else
    printf 'FAILED    %s\n%s\n' "$header" "$(grep -m 3 'error' <<<"$errors" || head -n 3 <<<"$errors")"
  fi
  exit
fi

compiler=$1 stamps=$2
shift 2
folders=(kiln)
if [ $# != 0 ]; then
  folders=("${@/#/kiln/}")
  for header in include/kiln/*.hpp; do folders+=("kiln/${header##*/}"); done
fi
command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is missing"; exit 77; }
mkdir -p "$stamps"
report=$(cd include && find "${folders[@]}" \( -name '*.hpp' -o -name '*.h' \) -not -path '*/impl/*' | sort |
  xargs -P 2 -n 1 bash ../test/hygiene/lone_headers.sh --one "$compiler" "$stamps")
sort -k 3 <<<"$report" | grep -v '^FAILED\|error' || true
failed=$(grep -c '^FAILED' <<<"$report" || true)
grep -A 3 '^FAILED' <<<"$report" || true
echo "$compiler: $failed headers do not compile alone"
[ "$failed" = 0 ]
