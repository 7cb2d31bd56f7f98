#!/usr/bin/env bash
# Builds the plugin and a program that uses it with ThreadSanitizer, in a folder of their own, and runs the tests in
# which 8 threads share a session of ONNX Runtime. The stock ONNX Runtime is not instrumented; nothing is suppressed. The
# build compiles 330 units, 20 minutes on two cores. Arguments go to cmake.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

bash cmake/peer.sh
folder=build/tsan_ep
cmake --preset tsan -B "$folder" -DKILN_ISA_LEVELS=x86-64-v2 -DKILN_HIP=OFF -DKILN_LANGUAGE=OFF -DKILN_C=OFF \
  -DKILN_MIGRAPHX=OFF -DKILN_PYTHON=OFF -DKILN_BUILD_DRIVER=OFF -DKILN_BUILD_EXAMPLES=OFF -DKILN_BUILD_TESTS=ON "$@"
cmake --build "$folder" --target kiln_onnxruntime_ep test_peer_ep
out=$(mktemp)
trap 'rm -f "$out"' EXIT
export TSAN_OPTIONS="halt_on_error=1 exitcode=66"
"$folder"/test/test_peer_ep --gtest_filter='ep_threads.*' --gtest_repeat=20 --gtest_brief=1 | tee "$out"
if grep -q SKIPPED "$out"; then
  echo "SKIPPED: ONNX Runtime is not in build/peer" >&2
  exit 77
fi
