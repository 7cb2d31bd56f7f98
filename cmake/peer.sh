#!/usr/bin/env bash
# Puts ONNX Runtime (npm's onnxruntime-node) into build/peer and prints the path of its library. Tests alone use it.
# `peer.sh tokenizers` does so with Hugging Face's native tokenizers, `peer.sh tensorflow` with tfjs,
# `peer.sh tflite` with TFLite's interpreter and `peer.sh openai` with OpenAI's client; they print the folder of npm's modules.
# Exit status 77, with the reason on standard error, where npm reaches nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One at a time: two npm in a folder break what they install.
mkdir -p build
exec 9>build/peer.lock
flock 9

version=1.30.0

# modules FOLDER PACKAGE...: the folder of npm's modules below build/FOLDER, with these in it.
modules() {
  local folder=build/$1 missing=()
  shift
  for package in "$@"; do
    [ -f "$folder/node_modules/${package%@*}/package.json" ] || missing+=("$package")
  done
  if [ ${#missing[@]} != 0 ]; then
    mkdir -p "$folder"
    if ! command -v npm >/dev/null || ! npm install --prefix "$folder" --ignore-scripts --legacy-peer-deps --no-audit --no-fund \
      --fetch-retries=1 --loglevel=error "${missing[@]}" >&2; then
      echo "SKIPPED: npm did not deliver ${missing[*]}, so nothing is compared with it" >&2
      exit 77
    fi
  fi
  echo "$PWD/$folder/node_modules"
}
case ${1-} in
  tokenizers) modules peer tokenizers@0.23.2; exit ;;
  tensorflow) modules peer @tensorflow/tfjs-{core,converter,backend-cpu}@4.22.0; exit ;;
  tflite) modules tflite @tensorflow/tfjs-tflite@0.0.1-alpha.10; exit ;;
  openai) modules openai openai@6.49.0; exit ;;  # of the last major version that Node 20 runs
esac

case $(uname -m) in
  x86_64) machine=x64 ;;
  aarch64) machine=arm64 ;;
  *) echo "SKIPPED: no ONNX Runtime for $(uname -m)" >&2; exit 77 ;;
esac
library() { find -H "$PWD/build/peer" -path "*linux/$machine/libonnxruntime.so.1" -print -quit 2>/dev/null; }

if [ -z "$(library)" ]; then
  if ! command -v npm >/dev/null; then
    echo "SKIPPED: npm is missing, so nothing is compared with ONNX Runtime" >&2
    exit 77
  fi
  mkdir -p build/peer
  # Its install script would fetch CUDA libraries.
  if ! npm install --prefix build/peer --ignore-scripts --no-audit --no-fund --fetch-retries=1 --loglevel=error \
    "onnxruntime-node@$version" >&2; then
    echo "SKIPPED: npm did not deliver onnxruntime-node, so nothing is compared with ONNX Runtime" >&2
    exit 77
  fi
fi
library | grep . || { echo "SKIPPED: onnxruntime-node $version holds no library for $machine" >&2; exit 77; }
