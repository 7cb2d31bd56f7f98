#!/usr/bin/env bash
# level.sh LEVEL PROGRAM [ARGUMENT...]: runs PROGRAM with libkiln_eigen.so.1 of one instruction-set level, x86-64-v2 being
# the base, and checks that the loader indeed took that one. Where it takes
# that level by itself, the program is not run: its own ctest cases are at that level.
set -euo pipefail
level=$1
shift

loader=/lib64/ld-linux-x86-64.so.2
if ! "$loader" --help | grep -q "$level (supported"; then
  echo "SKIPPED: this machine does not have $level"
  exit 77
fi
taken=$("$loader" --glibc-hwcaps-mask "$level" --list "$1" | awk '/libkiln_eigen/ {print $3}')
case $taken in
  */glibc-hwcaps/"$level"/*) ;;
  */glibc-hwcaps/*) echo "the loader took $taken"; exit 1 ;;
  *) [ "$level" = x86-64-v2 ] || { echo "the loader took ${taken:-none}"; exit 1; } ;;
esac
if [ "$taken" = "$("$loader" --list "$1" | awk '/libkiln_eigen/ {print $3}')" ]; then
  echo "the loader takes $level by itself, so the program's own cases run it"
  exit 0
fi
exec "$loader" --glibc-hwcaps-mask "$level" "$@"
