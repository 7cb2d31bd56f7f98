#!/usr/bin/env bash
# compile_time.sh COMPILER: the processor time that each unit of compile_time.txt takes to compile, scaled by the
# machine's speed, stays within its limit. A unit over it gets four more tries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

compiler=$1 bad=0
TIMEFORMAT='%U %S'
object=$(mktemp)
probe=$(mktemp --suffix=.cpp)
trap 'rm -f "$object" "$probe"' EXIT
printf '#include <%s>\n' map memory string vector >"$probe"

# The seconds of processor time that a compilation takes; what the compiler says where it fails.
spend() {
  local said
  said=$({ time "$compiler" -std=c++20 -O2 "$@" -c -o "$object" >&2; } 2>&1) || {
    echo "$said"
    return 1
  }
  awk 'END { print $1 + $2 }' <<<"$said"
}

# The limits are for a machine on which the standard headers alone take 0.5 s; on a slower or busier one they grow. How
# busy it is changes by half within a minute, so each try is held against the headers compiled just before and after it.
while read -r limit source flags; do
  case $limit in '' | '#'*) continue ;; esac
  least=
  before=$(spend "$probe") || {
    echo "the standard headers do not compile: $before"
    exit 1
  }
  for _ in 1 2 3 4 5; do
    # shellcheck disable=SC2086
    spent=$(spend -I include $flags "$source") || {
      echo "$source does not compile: $spent"
      least=failed
      break
    }
    after=$(spend "$probe")
    least=$(awk -v least="$least" -v t="$spent" -v a="$before" -v b="$after" 'BEGIN {
      slowness = (a + b) / 2 / 0.5
      t /= slowness > 1 ? slowness : 1
      print least == "" || t < least ? t : least
    }')
    before=$after
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
