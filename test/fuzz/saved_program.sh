#!/bin/sh
# Damages saved programs and loads them: bash test/fuzz/saved_program.sh KILN FUZZER [cases] [seed]
# KILN: the program kiln, FUZZER: fuzz_saved_program. Without arguments: both of the preset asan, and 10000 cases.
# The programs are digits, compiled alone and with its source.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ $# -eq 0 ]; then
  cd "$root"
  cmake --preset asan >/dev/null
  cmake --build --preset asan --target kiln_program fuzz_saved_program
  set -- build/asan/bin/kiln build/asan/test/fuzz_saved_program 10000
  cd - >/dev/null
  set -- "$root/$1" "$root/$2" "$3"
fi
# thousands of files, each read once: not for a disk
[ -w /dev/shm ] && export TMPDIR=/dev/shm
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" compile "$root/examples/models/digits/model.onnx" -o "$folder/native.kiln" >/dev/null
"$1" compile "$root/examples/models/digits/model.onnx" -o "$folder/portable.kiln" --portable >/dev/null
# a crafted program may ask for more memory than there is: that is an error of kiln's, not of the sanitizer
export ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1:${ASAN_OPTIONS-}"
"$2" "${3:-10000}" "${4:-1}" "$folder/native.kiln" "$folder/portable.kiln"
