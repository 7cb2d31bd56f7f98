#!/usr/bin/env bash
# Writes docs/performance.md: the machine, what it gives, and bench_versus_onnxruntime's table over the models given, or
# over all of bench/models (those that generate.py makes go to build/bench_models and take 3 GB).
#
#     bash bench/performance.sh build/release [MODEL.onnx...] > docs/performance.md
set -euo pipefail
build=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
threads=${KILN_BENCH_THREADS:-2}
if [ $# = 0 ]; then
  models=$here/../build/bench_models
  python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import onnx' 2> /dev/null && echo "$p" && break; done) ||
    { echo "python3-onnx is missing: apt-get install python3-onnx" >&2; exit 2; }
  names=$("$python" "$here/models/generate.py" --list | grep -vE '_(fp16|int8|int8_in|dyn8)$')
  "$python" "$here/models/generate.py" "$models" --only "$(echo $names | tr ' ' ',')" >&2
  for name in $names; do set -- "$@" "$models/$name.onnx"; done
  trained=$here/../examples/models
  set -- "$@" "$here"/models/light/*.onnx \
    --dim past_sequence_length=100 --dim total_sequence_length=101 "$trained/scripture/model.onnx" \
    --threads 1 "$trained/digits/model.onnx"
fi
ceilings() {
  "$build/bench/bench_kernels" --benchmark_filter='^(peak_fma|read_memory)/' --benchmark_min_time=0.2 2> /dev/null |
    sed -n 's,^\([a-z_]*/[^ ]*\)/real_time .*\(GFLOP/s\|GB/s\)=\([0-9.]*\).*,\1 \3 \2,p'
}
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
cat <<END
# CPU performance beside ONNX Runtime

## Method

Written by \`bench/performance.sh\` from \`bench/versus_onnxruntime\`. kiln and ONNX Runtime alternate in one process, with $threads threads, in f32.

| column | meaning |
|---|---|
| ratio | ONNX Runtime's time over kiln's, the median over rounds of adjacent runs |
| ratio of best | the same for the shortest runs, which other programs disturbed least |
| load ratio | ONNX Runtime's session creation over kiln's reading and compiling of the file |
| difference | the greatest one between both outputs, relative to the greatest output |

Rows \`light_…\` are the ONNX project's light models. The others are networks and layers of real size with random weights (\`bench/models\`), whose
names give channels and extents; scripture and digits are the trained examples. To reproduce: \`bash cmake/peer.sh\` (ONNX Runtime),
\`apt-get install python3-onnx\` (models), then \`bash bench/performance.sh build/release > docs/performance.md\`.

## Machine

$processor, $(getconf _NPROCESSORS_ONLN) processors; load average before the run: $(cut -d ' ' -f 1 /proc/loadavg). Above a load average of 0.3,
milliseconds say little and ratios not much.

Ceilings of the machine in the same run (\`bench_kernels\` prints each kernel beside them): FMA on operands in L1, and plain reads of so many MiB
by all threads. Neighbors on a shared machine show here first.

| ceiling | before | after |
|---|---|---|
END
before=$(ceilings)
status=0
table=$("$build/bench/bench_versus_onnxruntime" --threads "$threads" "$@") || status=$?
after=$(ceilings)
printf '%s\n' "$before" | while read -r name value; do
  echo "| $name | $value | $(printf '%s\n' "$after" | sed -n "s|^$name ||p") |"
done
printf '\n## Results\n\n%s\n' "$table"
exit "$status"
