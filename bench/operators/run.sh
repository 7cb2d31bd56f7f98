#!/usr/bin/env bash
# Writes the corpus of single operators, times it in kiln and ONNX Runtime, prints the worst twenty and the geometric
# mean, and writes docs/performance_operators.md. Takes about half an hour and 1 GB in build/bench_operators.
#
#     bash bench/operators/run.sh build/release [TEXT]
#
# With TEXT only cases whose names hold it are run, and no page is written. Exit status 1 where outputs differ.
set -euo pipefail
build=$1
only=${2-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import onnx' 2> /dev/null && echo "$p" && break; done) ||
  { echo "python3-onnx is missing: apt-get install python3-onnx" >&2; exit 2; }
models=$here/../../build/bench_operators
results=$models/results.tsv
"$python" "$here/generate.py" "$models" --only "$only"
"$build/bench/bench_operators" "$models/cases.txt" > "$results"
[ -n "$only" ] || "$python" "$here/report.py" "$results" --markdown > "$here/../../docs/performance_operators.md" || true
"$python" "$here/report.py" "$results"
