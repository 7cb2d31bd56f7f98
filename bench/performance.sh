#!/bin/sh
# Writes docs/performance.md: the machine, its load, and bench_versus_onnxruntime's table over the models given.
#
#     sh bench/performance.sh build/release MODEL.onnx... > docs/performance.md
set -eu
build=$1
shift
threads=${KILN_BENCH_THREADS:-2}
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "# Beside ONNX Runtime"
echo
echo "Written by \`bench/performance.sh\` from \`bench/versus_onnxruntime\`: both run by turns in one process, with $threads threads and"
echo "fp32. A ratio is ONNX Runtime's time over kiln's, the median over rounds of adjacent runs; \`load ratio\` is the same for creating"
echo "a session and for reading and compiling a model; \`difference\` is the greatest one, relative to the greatest output."
echo
echo "Machine: $processor, $(getconf _NPROCESSORS_ONLN) processors; load average before the run: $(cut -d ' ' -f 1 /proc/loadavg)."
echo "Figures taken while other programs ran (a load average above 0.3) say little about milliseconds and not much about ratios."
echo
"$build/bench/bench_versus_onnxruntime" --threads "$threads" "$@"
echo
echo "Kernels beside the machine's ceilings: \`$build/bench/bench_kernels\`."
