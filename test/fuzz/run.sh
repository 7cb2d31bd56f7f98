#!/bin/sh
# Fuzzes the ONNX importer under address and undefined-behavior sanitizers: bash test/fuzz/run.sh [seconds] [model folders]
# The corpus is every small model of ONNX's backend tests; what fails is left in build/fuzz/found.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- /usr/share/libonnx-testdata/data
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzz_onnx_import
corpus=build/fuzz/corpus
mkdir -p "$corpus" build/fuzz/found
find "$@" -name model.onnx -size -64k | while read -r model; do
  cp "$model" "$corpus/$(echo "$model" | cksum | cut -d' ' -f1).onnx"
done
build/fuzz/test/fuzz_onnx_import "$corpus" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 \
  -artifact_prefix=build/fuzz/found/
