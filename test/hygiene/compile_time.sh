#!/usr/bin/env bash
# compile_time.sh COMPILER: the processor time that each unit of compile_time.txt takes to compile stays within its
# limit. A unit over it gets two more tries, since the machine may be busy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

compiler=$1 bad=0
TIMEFORMAT='%U %S'
object=$(mktemp)
trap 'rm -f "$object"' EXIT
# The limits are for a machine on which the standard headers alone take 0.5 s; on a slower or busier one they grow.
probe=$(mktemp --suffix=.cpp)
trap 'rm -f "$object" "$probe"' EXIT
printf '#include <%s>\n' map memory string vector >"$probe"
standard=$({ time "$compiler" -std=c++20 -O2 -c "$probe" -o "$object"; } 2>&1 | awk '{ print $1 + $2 }')
slowness=$(awk -v t="$standard" 'BEGIN { print (t > 0.5 ? t / 0.5 : 1) }')
echo "standard headers $standard s, limits times $slowness"
while read -r limit source flags; do
  case $limit in '' | '#'*) continue ;; esac
  limit=$(awk -v limit="$limit" -v by="$slowness" 'BEGIN { print limit * by }')
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
