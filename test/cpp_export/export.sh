#!/usr/bin/env bash
# export.sh KILN BUILD: the exported digits network builds with its own CMakeLists.txt and with kiln_add_model, is small,
# needs no library but the C++ compiler's own, refers to no allocation, and says what is wrong with its arguments.
set -euo pipefail
kiln=$1 build=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

"$kiln" export "$root/examples/models/digits/model.onnx" --cpp "$work/digits" --dim batch=1
grep -rE '#include' "$work/digits" | grep -vE '<[a-z_]+>|"digits.hpp"' && fail "it includes more than the standard library"
cmake -S "$work/digits" -B "$work/build" -DKILN_EXPORT_ARCH=x86-64-v3 >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
grep -rqs -- '-march=x86-64-v3' "$work/build" || fail "KILN_EXPORT_ARCH does not choose the instruction set"
program=$work/build/digits
strip "$program"
[ "$(stat -c %s "$program")" -lt 409600 ] || fail "it takes $(stat -c %s "$program") bytes"
ldd "$program" | grep -vE 'linux-vdso|libc\.so|libm\.so|libstdc\+\+|libgcc_s|ld-linux' && fail "it needs other libraries"
nm -D --undefined-only "$program" | grep -E 'malloc|calloc|realloc|_Zn[wa]' && fail "it allocates"

# one image: the first 64 numbers of 360 * 64 that end the tensor file
tail -c $((360 * 64 * 4)) "$root/examples/models/digits/test_data_set_0/input_0.pb" >"$work/images"
head -c 256 "$work/images" >"$work/image"
"$program" "$work/image" "$work/probabilities"
[ "$(stat -c %s "$work/probabilities")" = 40 ] || fail "it writes $(stat -c %s "$work/probabilities") bytes"
for arguments in "" "$work/image" "$work/missing $work/out" "$program $work/out"; do
  status=0
  # shellcheck disable=SC2086
  "$program" $arguments 2>"$work/says" || status=$?
  [ $status = 2 ] && [ -s "$work/says" ] || fail "arguments '$arguments' give status $status"
done
for name in "no name" class std; do
  status=0
  "$kiln" export "$root/examples/models/digits/model.onnx" --cpp "$work/other" --name "$name" 2>"$work/says" || status=$?
  [ $status = 2 ] && [ ! -e "$work/other" ] && grep -q identifier "$work/says" || fail "the name '$name' gives status $status"
done

cmake -S "$root/test/cpp_export/model_project" -B "$work/project" -Dkiln_DIR="$build" -DKILN_SOURCE="$root" -DCMAKE_BUILD_TYPE=Release \
  -DKILN_EXPORT_ARCH=x86-64-v3 >"$work/log" || { cat "$work/log"; exit 1; }
grep -rqs -- '-march=x86-64-v3' "$work/project" || fail "kiln_add_model does not take KILN_EXPORT_ARCH"
cmake --build "$work/project" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/project/classify" "$root/examples/models/digits/test_data_set_0/input_0.pb" "$root/examples/models/digits/labels.pb"
