#!/usr/bin/env bash
# Runs a Llama of TinyLlama-1.1B's shape with random Q4_0 weights in kiln and in llama.cpp's library, from one GGUF file
# and by turns: a prompt of 512 tokens, and greedy steps after it.
#
#     bash bench/language/versus_llama.sh build/release [THREADS] [ROUNDS]
#
# llama.cpp comes from npm (node-llama-cpp with its prebuilt library and the sources of its headers) into build/peer.
# Prints a table; takes about two minutes and 1 GB. Exit status 77, with the reason, where npm delivers nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:?the build folder}
threads=${2-2}
rounds=${3-3}
version=3.22.1
peer=$PWD/build/peer/llama

library=$peer/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64
if [ ! -d "$library" ]; then
  mkdir -p "$peer"
  npm install --prefix "$peer" --ignore-scripts --no-audit --no-fund --omit=optional --fetch-retries=1 --loglevel=error \
    "node-llama-cpp@$version" "@node-llama-cpp/linux-x64@$version" >&2 ||
    { echo "SKIPPED: npm did not deliver node-llama-cpp, so nothing is compared with llama.cpp" >&2; exit 77; }
fi
headers=$peer/headers
[ -d "$headers" ] || git clone --quiet "$peer/node_modules/node-llama-cpp/llama/gitRelease.bundle" "$headers" 2> /dev/null
g++ -std=c++20 -O2 -isystem "$headers/include" -isystem "$headers/ggml/include" bench/language/llama_steps.cpp \
  -o "$peer/llama_steps" "$library"/libllama.v*.so "$library"/libggml.v*.so "$library/libggml-base.so" "-Wl,-rpath,$library"

python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import numpy' 2> /dev/null && echo "$p" && break; done) ||
  { echo "python3-numpy is missing: apt-get install python3-numpy" >&2; exit 2; }
model=$peer/tiny_q4_0.gguf
[ -f "$model" ] || "$python" bench/language/make_gguf.py "$model"

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for ((round = 0; round < rounds; ++round)); do
  echo "llama $("$peer/llama_steps" "$library" "$model" "$threads" 512 48 2)"
  for level in 0 4; do
    flag=; [ "$level" = 0 ] || flag=--accuracy-level-4
    echo "kiln$level $("$build/bin/kiln" genai bench "$model" --threads "$threads" $flag \
      -l 512 -g 49 -r 2 -w 1 --json | tr -d '\n')"
  done
done > "$lines"
"$python" - "$lines" <<'PYTHON'
import json, statistics, sys
rows = {}
for line in open(sys.argv[1]):
    name, figures = line.split(" ", 1)
    f = json.loads(figures)
    if name != "llama":
        f = {"prompt_ms": f["Prompt Processing Latency (ms)"], "step_ms": f["Token Generation Latency (ms)"]}
    rows.setdefault(name, []).append((f["prompt_ms"], f["step_ms"]))
middle = {name: [statistics.median(x) for x in zip(*all)] for name, all in rows.items()}
print("| | prompt of 512, ms | a step, ms | tokens a second | llama.cpp's time over it: prompt | step |\n|---|---|---|---|---|---|")
for name, said in (("llama", "llama.cpp"), ("kiln0", "kiln"), ("kiln4", "kiln, `--accuracy-level-4`")):
    prompt, step = middle[name]
    print(f"| {said} | {prompt:.0f} | {step:.1f} | {1000 / step:.1f} | {middle['llama'][0] / prompt:.2f} | {middle['llama'][1] / step:.2f} |")
PYTHON
