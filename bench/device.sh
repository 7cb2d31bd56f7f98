#!/usr/bin/env bash
# device.sh KILN BENCH_DEVICE [FOLDER...]: on a machine with a GPU and nothing else, runs the models of examples/, the ONNX
# backend tests below the folders (each holds test folders), and timings, beside PyTorch's where python3 has it. KILN and
# BENCH_DEVICE are programs built elsewhere, with the libraries they need beside them or in LD_LIBRARY_PATH. Exit status 1
# where a case that passes on the CPU fails on the GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kiln=$(realpath "$1") bench=$(realpath "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

for model in examples/models/*/; do
  "$kiln" test "$model" --target hip | tail -n 1 | sed "s|^|$(basename "$model"): |" || status=1
done

find "$@" -mindepth 2 -maxdepth 2 -name model.onnx -printf '%h\n' 2>/dev/null | sort >"$work/cases" || true
if [ $# != 0 ]; then
  for target in eigen hip; do
    xargs -a "$work/cases" -P "$(nproc)" -n 8 "$kiln" test --target $target --threads 1 >"$work/$target" 2>&1 || true
    sed -n 's/^passed //p' "$work/$target" | sort >"$work/$target.passed"
    echo "$target: $(wc -l <"$work/$target.passed") of $(wc -l <"$work/cases") backend tests pass"
  done
  lost=$(comm -23 "$work/eigen.passed" "$work/hip.passed")
  [ -z "$lost" ] || { printf 'pass on the CPU alone:\n%s\n' "$lost"; status=1; }
fi

"$bench" >"$work/kiln"
python3 bench/versus_torch.py >"$work/torch" 2>/dev/null || echo "SKIPPED: python3 has no PyTorch with a GPU"
awk 'FNR == NR { torch[$2] = $3; next }
  { printf "%-22s %10s ms %10s GB/s  torch %10s  ratio %s\n", $2, $3, $5, torch[$2], ($2 in torch && $3 > 0) ? torch[$2] / $3 : "-" }' \
  "$work/torch" "$work/kiln"
exit $status
