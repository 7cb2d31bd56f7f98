#!/usr/bin/env bash
# consumer.sh BUILD: the example in C++ is built over an installation that has moved, and finds the plugin there; kiln's
# package for Node runs there too.
set -euo pipefail
build=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../../..
work=$build/consumer/onnxruntime_shim
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/staged" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/staged" "$work/moved"
cd "$root"
cmake -G Ninja -S "$here/find_package_project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" \
  -DEXAMPLE="$PWD/examples/onnxruntime/digits.cpp" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/consumer"
package=$(dirname "$(find "$work/moved" -name kiln_onnxruntime.node)")
if command -v node >/dev/null; then
  node examples/onnxruntime/digits.mjs "${KILN_ONNXRUNTIME_LIBRARY%/onnxruntime-node/*}" "$package"
else
  echo "node is missing: kiln's package for it is not tried"
fi
