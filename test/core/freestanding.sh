#!/usr/bin/env bash
# freestanding.sh host|amd|nvidia [COMPILER]: core/math.hpp compiles alone: for the host without any system header, for
# AMD's devices with clang and no device library, for NVIDIA's with nvcc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
strict="-std=c++20 -Wall -Wextra -Werror -ffp-contract=off -I include"

if [ "$1" = host ]; then
  # shellcheck disable=SC2086
  "$2" $strict -ffreestanding -nostdinc -nostdinc++ -fsyntax-only -x c++ - <<'SOURCE'
#include "kiln/core/math.hpp"
static_assert(kiln::exp(0.0) == 1);
float body(float x) { return kiln::sin(x) + kiln::pow(x, 2.0f) + kiln::fmod(x, 3.0f) + kiln::erf(x); }
SOURCE
  exit
fi

source=$(mktemp --suffix=.cu)
object=$(mktemp)
trap 'rm -f "$source" "$object"' EXIT
cat >"$source" <<'SOURCE'
#include "kiln/core/math.hpp"
static_assert(kiln::exp(0.0f) == 1);
template <class T>
KILN_FN T every_function(T x, T y) {
  T s = kiln::exp(x) + kiln::exp2(x) + kiln::expm1(x) + kiln::sigmoid(x) + kiln::erf(x) + kiln::abs(x) + kiln::sign(x);
  s += kiln::log(x) + kiln::log2(x) + kiln::log10(x) + kiln::log1p(x) + kiln::sqrt(x) + kiln::rsqrt(x) + kiln::recip(x);
  s += kiln::sin(x) + kiln::cos(x) + kiln::tan(x) + kiln::asin(x) + kiln::acos(x) + kiln::atan(x) + kiln::atan2(x, y);
  s += kiln::sinh(x) + kiln::cosh(x) + kiln::tanh(x) + kiln::asinh(x) + kiln::acosh(x) + kiln::atanh(x);
  s += kiln::round(x) + kiln::floor(x) + kiln::ceil(x) + kiln::trunc(x) + kiln::min(x, y) + kiln::max(x, y);
  s += kiln::pow(x, y) + kiln::fmod(x, y) + kiln::mod(x, y) + kiln::fma(x, y, s) + kiln::copysign(x, y);
  return kiln::select(kiln::logical_or(kiln::isnan(x), kiln::isinf(y)), s, kiln::splat<T>(0.5));
}
__attribute__((global)) void floats(float* p) { p[2] = every_function(p[0], p[1]); }
__attribute__((global)) void doubles(double* p) { p[2] = every_function(p[0], p[1]); }
__attribute__((global)) void integers(kiln::scalar::i64* p) {
  p[2] = kiln::min(p[0], p[1]) + kiln::mod(p[0], p[1]) + kiln::pow(p[0], p[1]) + kiln::sign(p[0]) + kiln::abs(p[1]);
}
SOURCE

case $1 in
  amd)
    command -v clang++-16 >/dev/null || { echo "SKIPPED: clang++-16 is missing"; exit 77; }
    for device in gfx90a gfx1030; do
      # shellcheck disable=SC2086
      clang++-16 $strict -x hip --offload-arch=$device --cuda-device-only -nogpuinc -nogpulib -O1 -S "$source" -o "$object"
      echo "$device: $(grep -c 's_endpgm' "$object") kernels"
      [ "$(grep -c 's_endpgm' "$object")" -ge 3 ]
    done
    ;;
  nvidia)
    nvcc=$(command -v nvcc || ls -d /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "SKIPPED: nvcc is missing"; exit 77; }
    sed -i 's/__attribute__((global))/__global__/' "$source"
    "$nvcc" -std=c++20 -fmad=false -ptx -arch=sm_90 -I include "$source" -o "$object"
    echo "sm_90: $(grep -c '^.visible .entry' "$object") kernels"
    [ "$(grep -c '^.visible .entry' "$object")" = 3 ]
    ;;
esac
