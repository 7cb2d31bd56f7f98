#!/usr/bin/env bash
# Sets up a fresh Debian 12 machine, builds the program kiln and the examples, and runs digits and scripture.
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

install_missing $build_packages

# A tree that was configured with its tests keeps them.
if [ -f build/release/CMakeCache.txt ]; then
  cmake --preset release
else
  cmake --preset release -DKILN_BUILD_TESTS=OFF -DKILN_BUILD_BENCH=OFF
fi
cmake --build --preset release -j "$(build_jobs)" --target kiln_program examples

build/release/bin/kiln --version
for example in digits scripture; do
  echo "== $example"
  build/release/examples/$example
done
