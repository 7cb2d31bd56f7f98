#!/usr/bin/env bash
# amd_atoms.sh ARCHITECTURE INSTRUCTION...: amd_atoms.hip compiles for the architecture, to code that holds each of the
# instructions. Exit status 77 where there is no clang++-16.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v clang++-16 >/dev/null || { echo "SKIPPED: no clang++-16 to compile for $1"; exit 77; }
wave=()
[[ $1 == gfx9* ]] && wave=(-DKILN_WAVE64=1)
code=$(clang++-16 -x hip --cuda-device-only --offload-arch="$1" -nogpulib -nogpuinc -std=c++20 -O3 -Wall -Werror \
  -ffp-contract=off -DKILN_AMD=1 ${wave[@]+"${wave[@]}"} -I include -S -o - test/hip_kernels/amd_atoms.hip)
shift
for instruction in "$@"; do
  grep -q "$instruction" <<<"$code" || { echo "$instruction is nowhere in the code"; exit 1; }
done
