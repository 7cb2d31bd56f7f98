#!/usr/bin/env bash
# run.sh SOURCE COMPILER...: SOURCE does not compile, and each compiler's first error contains the text that SOURCE's
# first line asks for: "// expect: text". clang names the function that stopped a constant evaluation in a note, so
# the notes of its first error count too.
set -euo pipefail
source_file=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

expected=$(sed -n '1s|^// expect: *||p' "$source_file")
[ -n "$expected" ] || { echo "$source_file: the first line must be \"// expect: text\""; exit 1; }
ran=0 bad=0
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is missing"; continue; }
  ran=$((ran + 1))
  if output=$("$compiler" -std=c++20 -fsyntax-only -fdiagnostics-color=never -I "$root/include" "$source_file" 2>&1); then
    echo "$compiler compiles it"
    bad=1
    continue
  fi
  if "$compiler" --version | grep -q clang; then
    first=$(awk '/error:/ && seen++ { exit } seen && /error:|note:/' <<<"$output")
  else
    first=$(grep -m 1 'error:' <<<"$output" || true)
  fi
  if grep -qF -- "$expected" <<<"$first"; then
    echo "$compiler says: $expected"
  else
    printf '%s does not say "%s" but:\n%s\n' "$compiler" "$expected" "$first"
    bad=1
  fi
done
[ $ran != 0 ] || exit 77
exit $bad
