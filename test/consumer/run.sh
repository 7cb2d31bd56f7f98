#!/usr/bin/env bash
# run.sh installed|build_tree|add_subdirectory BUILD: builds and runs a project that uses kiln in that way. BUILD is
# kiln's own build tree.
set -euo pipefail
kind=$1 build=$2
targets=(consumer)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$build/consumer/$kind
mkdir -p "$work"

case $kind in
  installed)
    rm -rf "$work/staged" "$work/moved"
    cmake --install "$build" --prefix "$work/staged" >"$work.log" || { cat "$work.log"; exit 1; }
    # An installation may be moved.
    mv "$work/staged" "$work/moved"
    if [ -x "$build/bin/kiln" ]; then
      "$work/moved/bin/kiln" --version
    fi
    project=find_package
    options=(-DCMAKE_PREFIX_PATH="$work/moved")
    ;;
  build_tree)
    project=find_package
    options=(-Dkiln_DIR="$build")
    ;;
  add_subdirectory)
    project=add_subdirectory
    options=(-DKILN_SOURCE="$root" -DKILN_ISA_LEVELS=x86-64-v2)
    # one unit stands for all: they are generated and compiled in the same way
    targets=(consumer kiln/CMakeFiles/kiln_quantize.dir/units/quantize_table_text.cpp.o)
    ;;
esac

cmake -G Ninja -S "$root/test/consumer/$project" -B "$work/build" "${options[@]}" >"$work.log" || { cat "$work.log"; exit 1; }
cmake --build "$work/build" --target "${targets[@]}"
"$work/build/consumer"
