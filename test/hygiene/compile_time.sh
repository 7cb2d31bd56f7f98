#!/usr/bin/env bash
# compile_time.sh COMPILER: the processor time that each unit of compile_time.txt takes to compile stays within its
# limit. A unit over it gets two more tries, since the machine may be busy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

compiler=$1 bad=0
TIMEFORMAT='%U %S'
object=$(mktemp)
trap 'rm -f "$object"' EXIT
while read -r limit source flags; do
  case $limit in '' | '#'*) continue ;; esac
  least=
  for _ in 1 2 3; do
    # shellcheck disable=SC2086
    spent=$({ time "$compiler" -std=c++20 -O2 -I include $flags -c "$source" -o "$object" >&2; } 2>&1) || {
      echo "$source does not compile: $spent"
      least=failed
      break
    }
    least=$(awk -v least="$least" '{ t = $1 + $2; print least == "" || t < least ? t : least }' <<<"$spent")
    awk -v t="$least" -v limit="$limit" 'BEGIN { exit t > limit }' && break
  done
  if [ "$least" = failed ]; then
    bad=$((bad + 1))
  elif awk -v t="$least" -v limit="$limit" 'BEGIN { exit t > limit }'; then
    echo "ok   $least s of $limit s  $source"
  else
    echo "SLOW $least s of $limit s  $source"
    bad=$((bad + 1))
  fi
done <test/hygiene/compile_time.txt
[ $bad = 0 ]
