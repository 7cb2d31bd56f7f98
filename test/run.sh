#!/usr/bin/env bash
# Sets up a fresh Debian 12 machine, builds preset release and runs every test; the last lines are ctest's own summary.
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

install_missing $build_packages $test_packages
# The comparison with ONNX Runtime fetches it through npm; node from another source serves too.
command -v npm >/dev/null || install_missing nodejs npm

cmake --preset release -DKILN_BUILD_TESTS=ON -DKILN_BUILD_BENCH=ON
cmake --build --preset release -j "$(build_jobs)"
# One more than cores: tests wait for servers, links and files.
exec ctest --preset release -j "$(($(build_jobs) + 1))" "$@"
