#!/usr/bin/env bash
# device.sh [--tests TEST_HIP_KERNELS] KILN BENCH_DEVICE [FOLDER...]: on a machine with a GPU and nothing else, runs the
# models of examples/, what goes wrong, the ONNX backend tests below the folders (each holds test folders), and timings,
# beside PyTorch's where python3 has it; with --tests the tests of kernels and faults, too, and under compute-sanitizer
# where that is. The programs were built elsewhere, with the libraries they need beside them or in LD_LIBRARY_PATH. Exit
# status 1 where a case that passes on the CPU fails on the GPU, or where a fault is no error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests=
if [ "${1:-}" = --tests ]; then
  tests=$(realpath "$2")
  shift 2
fi
kiln=$(realpath "$1") bench=$(realpath "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

for model in examples/models/*/; do
  "$kiln" test "$model" --target hip | tail -n 1 | sed "s|^|$(basename "$model"): |" || status=1
done

# fails NAME WORDS COMMAND...: the command ends within a minute with an error that has the words.
fails() {
  local name=$1 words=$2 said code=0
  shift 2
  said=$(timeout 60 "$@" 2>&1) || code=$?
  if [ $code != 0 ] && [ $code != 124 ] && [ $code -lt 128 ] && grep -qF -- "$words" <<<"$said"; then
    echo "$name: $(grep -F -m 1 -- "$words" <<<"$said" | cut -c 1-150)"
  else
    printf '%s: exit status %s, not an error that has "%s":\n%s\n' "$name" $code "$words" "$(tail -n 3 <<<"$said")"
    status=1
  fi
}
model=examples/models/digits/model.onnx
[ -e "$model" ] || model=$(find examples/models -name model.onnx | head -n 1)
# a library by the driver's name that can't be opened
mkdir "$work/none"
for library in libcuda.so.1 libamdhip64.so libamdhip64.so.5 libamdhip64.so.6; do echo none >"$work/none/$library"; done
fails "no driver" "none is usable here" \
  env LD_LIBRARY_PATH="$work/none${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$kiln" run "$model" --target hip
fails "no such device" "a device by its number" "$kiln" run "$model" --target hip:99
pids=()
for i in 1 2; do
  timeout 120 "$kiln" test "$(dirname "$model")" --target hip >"$work/process$i" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || { echo "of two processes at once one fails"; status=1; }; done

if [ -n "$tests" ]; then
  timeout 600 "$tests" --gtest_brief=1 || status=1
  few='device_threads*:*tile_kernels_on_device.poolings/f16:*tile_kernels_on_device.products/f16:*attention_on_device.heads/f16'
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      compute-sanitizer --tool $tool --error-exitcode 9 "$tests" --gtest_brief=1 --gtest_filter="$few" >"$work/$tool" 2>&1 ||
        status=1
      grep -q 'PASSED.* [3-9] tests' "$work/$tool" || { echo "$tool ran fewer than 3 tests"; status=1; }
      echo "$tool: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$work/$tool" | tail -n 1)"
    done
  else
    echo "SKIPPED: compute-sanitizer is not here"
  fi
fi

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
