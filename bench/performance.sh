#!/bin/sh
# Writes docs/performance.md: the machine, its load, and bench_versus_onnxruntime's table over the models given.
#
#     sh bench/performance.sh build/release MODEL.onnx... > docs/performance.md
set -eu
build=$1
shift
threads=${KILN_BENCH_THREADS:-2}
ceilings() {
  "$build/bench/bench_kernels" --benchmark_filter='^(peak_fma|read_memory)/' --benchmark_min_time=0.2 2> /dev/null |
    sed -n 's,^\([a-z_]*/[^ ]*\)/real_time .*\(GFLOP/s\|GB/s\)=\([0-9.]*\).*,\1 \3 \2,p'
}
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "# Beside ONNX Runtime"
echo
echo "Written by \`bench/performance.sh\` from \`bench/versus_onnxruntime\`: both run by turns in one process, with $threads threads and"
echo "fp32. A ratio is ONNX Runtime's time over kiln's, the median over rounds of adjacent runs; \`ratio of best\` that of the"
echo "shortest runs, which other programs disturbed least; \`load ratio\` is the same for creating a session and for reading and compiling a"
echo "model; \`difference\` is the greatest one, relative to the greatest output."
echo
echo "Rows \`light_…\` are the ONNX project's light models; the others are networks and layers of true size with random weights, whose names"
echo "say channels and extents, and what dims of a model had another size than 1. To take them: \`bash cmake/peer.sh\`, then \`sh bench/performance.sh build/release MODEL.onnx… > docs/performance.md\`."
echo
echo "Machine: $processor, $(getconf _NPROCESSORS_ONLN) processors; load average before the run: $(cut -d ' ' -f 1 /proc/loadavg)."
echo "Figures taken while other programs ran (a load average above 0.3) say little about milliseconds and not much about ratios."
echo
echo "What the machine gave in the same run (\`$build/bench/bench_kernels\` prints each kernel beside it): products of operands in the first-level"
echo "cache, and plain reads of so many MiB by all threads. Neighbours of a shared machine show here first."
echo
echo "| ceiling | before | after |"
echo "|---|---|---|"
before=$(ceilings)
table=$("$build/bench/bench_versus_onnxruntime" --threads "$threads" "$@") || status=$?
after=$(ceilings)
printf '%s\n' "$before" | while read -r name value; do
  echo "| $name | $value | $(printf '%s\n' "$after" | sed -n "s|^$name ||p") |"
done
echo
printf '%s\n' "$table"
exit "${status:-0}"
