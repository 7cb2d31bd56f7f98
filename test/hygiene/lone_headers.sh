#!/usr/bin/env bash
# lone_headers.sh COMPILER STAMPS [FOLDER...]: every public header (of these folders of kiln, and those beside them)
# compiles alone, or first in a unit of headers that include it (header_chains.py), after a precompiled one that it
# includes. STAMPS is a folder that remembers, so that headers are compiled again only after something they include has
# changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
flags="-std=c++20 -Wall -Wextra -Werror -ffp-contract=off -I include"

# changed_since MADE RULES: whether something that the make rules in the file RULES name is newer than the file MADE
changed_since() {
  [ -f "$1" ] && [ -f "$2" ] || return 0
  sed -e 's/^[^:]*: *//' -e 's/ *\\$//' "$2" | tr -s ' ' '\n' | {
    changed=1  # to the last line: who writes to a reader that is gone fails, and so the pipe
    while read -r file; do
      [ -z "$file" ] || { [ -f "$file" ] && [ ! "$file" -nt "$1" ]; } || changed=0
    done
    exit $changed
  }
}

if [ "${1:-}" = --changed ]; then  # as changed_since, for its test
  changed_since "$2" "$3"
  exit
fi

# What lines begin with, behind a plus sign, is precompiled; each compiler looks for its own suffix.
if [ "${1:-}" = --precompile ]; then
  compiler=$2 begin=$3/begin/${4//\//_}
  made=$begin.gch
  ! "$compiler" --version | grep -q clang || made=$begin.pch
  changed_since "$made" "$begin.d" || exit 0
  rm -f "$made"
  [ -f "$begin" ] || echo "#include <$4>" >"$begin"
  # shellcheck disable=SC2086
  "$compiler" $flags -MMD -MF "$begin.d" -x c++-header "$begin" -o "$made" 2>/dev/null || true
  exit 0
fi

if [ "${1:-}" = --unit ]; then
  compiler=$2 stamps=$3
  shift 3
  begin=
  if [ "${1#+}" != "$1" ]; then
    name=${1#+}
    begin=$stamps/begin/${name//\//_}
    shift
  fi
  header=${!#}
  stamp=$stamps/${header//\//_}
  if [ -f "$stamp.ok" ] && [ "$(<"$stamp.ok")" = "$*" ] && ! changed_since "$stamp.ok" "$stamp.d" &&
    { [ -z "$begin" ] || ! changed_since "$stamp.ok" "$begin.d"; }; then
    printf 'same      %s\n' "$@"
    exit
  fi
  rm -f "$stamp.ok"
  echo "$*" >"$stamp.begun"
  # A header of one instruction set is alone with that set.
  case $header in
    */avx512*) level=-march=x86-64-v4 ;;
    */avx2*) level=-march=x86-64-v3 ;;
    *) level= ;;
  esac
  package=
  case $header in
    kiln/eigen.hpp) package=eigen3 ;;
    */python*) package=python3 ;;
  esac
  [ -z "$package" ] || package="$(pkg-config --cflags "$package" | sed 's/-I/-isystem /g') -fvisibility=hidden"
  # A precompiled header doesn't keep what config.hpp tells g++ of that warning.
  # shellcheck disable=SC2086
  if errors=$("$compiler" $flags -fsyntax-only $level $package ${begin:+-Wno-psabi -include "$begin"} \
    -I include/kiln/interface/migraphx/include -I include/kiln/interface/onnxruntime/shim/include -I include/kiln/interface/genai/include \
    -MMD -MF "$stamp.d" -x c++ - <<<"$(printf '#include <%s>\n' "$@")" 2>&1); then
    mv "$stamp.begun" "$stamp.ok"
    printf 'ok        %s\n' "$@"
  elif [ $# -gt 1 ]; then  # which of them it is
    for one in "$@"; do bash "$0" --unit "$compiler" "$stamps" "$one"; done | tee "$stamp.each"
    grep -q '^FAILED' "$stamp.each" || printf 'FAILED    %s, together\n%s\n' "$*" "$(grep -m 3 'error' <<<"$errors")"
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
mkdir -p "$stamps/begin"
units=(cat)
! command -v python3 >/dev/null || units=(python3 ../test/hygiene/header_chains.py)
lines=$(cd include && find "${folders[@]}" \( -name '*.hpp' -o -name '*.h' \) -not -path '*/impl/*' | sort | "${units[@]}")
each=(xargs -r -P 2 -L 1 bash test/hygiene/lone_headers.sh)
(grep -o '^+[^ ]*' <<<"$lines" || true) | sort -u | tr -d + | "${each[@]}" --precompile "$compiler" "$stamps"
report=$("${each[@]}" --unit "$compiler" "$stamps" <<<"$lines")
sort -k 2 <<<"$report" | grep -v '^FAILED\|error' || true
failed=$(grep -c '^FAILED' <<<"$report" || true)
grep -A 3 '^FAILED' <<<"$report" || true
echo "$compiler: $failed headers do not compile alone"
[ "$failed" = 0 ]
