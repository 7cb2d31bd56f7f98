#!/usr/bin/env bash
# consumer.sh BUILD: the example in C++ is built over an installation that has moved, by find_package and by pkg-config, and
# finds the plugin there; kiln's package for Node runs there too.
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

if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name kiln-onnxruntime.pc)")
  export PKG_CONFIG_PATH
  flags=$(pkg-config --cflags --libs kiln-onnxruntime)
  # shellcheck disable=SC2086
  g++ -std=c++17 -Wall -Wextra -Werror examples/onnxruntime/digits.cpp $flags \
    -Wl,-rpath,"$(pkg-config --variable=libdir kiln-onnxruntime)" -o "$work/by_pkg_config"
  "$work/by_pkg_config"
else
  echo "pkg-config is missing: kiln-onnxruntime.pc is not tried"
fi

package=$(dirname "$(find "$work/moved" -name kiln_onnxruntime.node)")
if command -v node >/dev/null; then
  node examples/onnxruntime/digits.mjs "${KILN_ONNXRUNTIME_LIBRARY%/onnxruntime-node/*}" "$package"
else
  echo "node is missing: kiln's package for it is not tried"
fi
