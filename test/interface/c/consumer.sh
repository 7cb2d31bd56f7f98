#!/usr/bin/env bash
# consumer.sh BUILD: a program in C is built over an installation that has moved, by pkg-config and by find_package; by
# find_package alone also one over MIGraphX's interface, and by both one over GenAI's, where they are installed.
set -euo pipefail
build=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
work=$build/consumer/c
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/staged" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/staged" "$work/moved"
cd "$root"

package=$(dirname "$(find "$work/moved" -name kiln.pc)")
lib=$(dirname "$package")
if command -v pkg-config >/dev/null; then
  flags=$(PKG_CONFIG_PATH=$package pkg-config --cflags --libs kiln)
  # shellcheck disable=SC2086
  gcc -std=c11 -Wall -Wextra -Werror -pedantic examples/c/digits.c $flags -Wl,-rpath,"$lib" -o "$work/by_pkg_config"
  "$work/by_pkg_config"
else
  echo "pkg-config is missing: kiln.pc is not tried"
fi

cmake -G Ninja -S "$here/find_package_project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" ||
  { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/consumer"
if [ -n "$(find "$work/moved" -name libmigraphx_c.so.3)" ]; then
  "$work/build/consumer_migraphx" "$work/saved.mxr"
else
  echo "MIGraphX's interface is not installed: it is not tried"
fi
if [ -n "$(find "$work/moved" -name libonnxruntime-genai.so)" ]; then
  "$work/build/consumer_genai"
  if command -v pkg-config >/dev/null; then
    flags=$(PKG_CONFIG_PATH=$package pkg-config --cflags --libs kiln-genai)
    # shellcheck disable=SC2086
    gcc -std=c11 -Wall -Wextra -Werror -pedantic examples/genai/c/model_qa.c $flags -Wl,-rpath,"$lib/kiln/genai" \
      -o "$work/genai_by_pkg_config"
    "$work/genai_by_pkg_config"
  fi
else
  echo "GenAI's interface is not installed: it is not tried"
fi
