#!/usr/bin/env bash
# Runs a Llama of TinyLlama-1.1B's shape with random Q4_0 weights in kiln and in llama.cpp's library, from one GGUF file
# and by turns: a prompt of 512 tokens, and greedy steps after it; then 32 streams side by side beside one alone, kiln's
# over HTTP (`kiln serve`), llama.cpp's, whose npm package has no server, as a batch of its library.
#
#     bash bench/language/versus_llama.sh build/release [THREADS] [ROUNDS] [TOKENS]
#
# TOKENS: those that each stream makes, 32 unless said.
#
# llama.cpp comes from npm (node-llama-cpp with its prebuilt library and the sources of its headers) into build/peer.
# Prints a table; takes about two minutes and 1 GB. Exit status 77, with the reason, where npm delivers nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:?the build folder}
threads=${2-2}
rounds=${3-3}
tokens=${4-32}
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
for name in llama_steps llama_streams; do
  g++ -std=c++20 -O2 -isystem "$headers/include" -isystem "$headers/ggml/include" bench/language/$name.cpp \
    -o "$peer/$name" "$library"/libllama.v*.so "$library"/libggml.v*.so "$library/libggml-base.so" "-Wl,-rpath,$library"
done

python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import numpy' 2> /dev/null && echo "$p" && break; done) ||
  { echo "python3-numpy is missing: apt-get install python3-numpy" >&2; exit 2; }
model=$peer/tiny_q4_0.gguf
[ -f "$model" ] || "$python" bench/language/make_gguf.py "$model"

lines=$(mktemp) loads=$(mktemp) log=$(mktemp) server=
end() {
  local status=$?
  if [ -n "$server" ]; then kill -KILL "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true; fi
  if [ "$status" != 0 ] && [ -s "$log" ]; then echo "the server's log:" >&2; cat "$log" >&2; fi
  rm -f "$lines" "$loads" "$log"
  exit "$status"
}
trap end EXIT
trap 'exit 130' INT TERM
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

# Streams: prompts of some thirty tokens, and those that are made. kiln's port is one that is free.
for ((round = 0; round < rounds; ++round)); do
  for streams in 1 32; do
    echo "llama $("$peer/llama_streams" "$library" "$model" "$threads" "$streams" 30 "$tokens" $((streams == 1 ? 4 : 1)))"
  done
  for level in 0 4; do
    flag=; [ "$level" = 0 ] || flag=--accuracy-level-4
    "$build/bin/kiln" serve "tiny=$model" --port 0 --threads "$threads" $flag 2> "$log" & server=$!
    until url=$(grep -o 'http://[0-9.:]*' "$log"); do sleep 0.1; kill -0 $server; done
    node bench/serve/load.mjs "$url" tiny --streams 32 --tokens "$tokens" --rounds 1 |
      sed -nE "s/^([0-9]+) streams?: .* ([0-9.]+) tokens\\/s.*/kiln$level {\"streams\": \\1, \"tokens_per_second\": \\2}/p"
    kill -TERM $server; wait $server; server=
  done
done > "$loads"
"$python" - "$loads" <<'PYTHON'
import json, statistics, sys
rows = {}
for line in open(sys.argv[1]):
    name, figures = line.split(" ", 1)
    f = json.loads(figures)
    rows.setdefault((name, f["streams"]), []).append(f["tokens_per_second"])
print("\n| | 1 stream, tokens a second | 32 streams | over one | over llama.cpp's 32 |\n|---|---|---|---|---|")
of = {key: statistics.median(all) for key, all in rows.items()}
for name, said in (("llama", "llama.cpp"), ("kiln0", "kiln"), ("kiln4", "kiln, `--accuracy-level-4`")):
    one, many = of[name, 1], of[name, 32]
    print(f"| {said} | {one:.1f} | {many:.1f} | {many / one:.1f} | {many / of['llama', 32]:.2f} |")
PYTHON
