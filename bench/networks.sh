#!/usr/bin/env bash
# Writes the networks of many kinds of bench/models, times them in kiln and ONNX Runtime, and writes
# docs/performance_networks.md. Takes about twenty minutes and 6 GB in build/bench_networks.
#
#     bash bench/networks.sh build/release [NAME[,NAME...]]
#
# With names only those are run, and no page is written. Exit status 1 where outputs differ.
set -euo pipefail
build=$1
only=${2-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import onnx' 2> /dev/null && echo "$p" && break; done) ||
  { echo "python3-onnx is missing: apt-get install python3-onnx" >&2; exit 2; }
models=$here/../build/bench_networks
results=$models/results.tsv
"$python" "$here/models/generate.py" "$models" --corpus --only "$only"
"$build/bench/bench_operators" "$models/cases.txt" --rounds 3 --budget-ms 60 --memory > "$results"
[ -n "$only" ] || "$python" "$here/operators/report.py" "$results" --networks --markdown > "$here/../docs/performance_networks.md" || true
"$python" "$here/operators/report.py" "$results" --networks
