#!/usr/bin/python3
"""Runs a Llama of TinyLlama-1.1B's shape with random 4-bit weights in kiln and in ONNX Runtime, from one ONNX file and by
turns: a prompt of 512 tokens, and greedy steps after it; and in kiln with products of floats.

    versus_onnxruntime.py BUILD [--threads 2] [--rounds 3] [--prompt 512] [--steps 48] [--layers 22] [--vocabulary 32000]

ONNX Runtime is npm's onnxruntime-node in build/peer (cmake/peer.sh), asked through its C interface: accuracy_level 4, its
quickest products, and caches that GroupQueryAttention fills in place. Only its runs and the choice of the greatest logit
are timed. Prints a table; takes about three minutes, 2 GB of disk and 3 GB of memory. Exit status 77, with the reason, where
ONNX Runtime is missing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "test/peer/families"))
try:
    import numpy as np
    import families
    import oracle
except ImportError as e:
    sys.exit(f"{e}: python3-onnx and python3-numpy of the system's python3 are needed")


def write_models(a, folders):
    """The families' llama of 4 bits in this size, with each accuracy_level that has a folder."""
    made = families.make("llama_int4", 1, layers=a.layers, vocab=a.vocabulary, hidden=2048, heads=32, kv=4, depth=64, inner=5632,
                         context=2048)
    levels = [attribute for node in made.nodes for attribute in node.attribute if attribute.name == "accuracy_level"]
    for level, folder in folders.items():
        for attribute in levels:
            attribute.i = level
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "genai_config.json"), "w") as f:
            json.dump(made.settings(), f)
        with open(os.path.join(folder, "vocab.txt"), "w") as f:  # words that mean nothing
            f.writelines(f"{word}\n" for word in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(5, a.vocabulary)])
        with open(os.path.join(folder, "model.onnx.part"), "wb") as f:
            f.write(made.proto().SerializeToString())
        os.rename(os.path.join(folder, "model.onnx.part"), os.path.join(folder, "model.onnx"))


def onnxruntime(a, folder):
    """Median milliseconds of a prompt and of a step."""
    begin = time.perf_counter()
    session = oracle.Session(oracle.library(os.path.join(ROOT, "build/peer")), os.path.join(folder, "model.onnx"), a.threads)
    load = time.perf_counter() - begin
    length = a.prompt + a.steps
    names = [n for n in session.inputs if n.startswith("past_key_values")]
    caches = {n: np.zeros((1, 4, length, 64), np.float32) for n in names}
    shared = [(n.replace("past_key_values", "present"), n) for n in names]
    prompt = np.random.default_rng(1).integers(0, a.vocabulary, (1, a.prompt))

    def timed(tokens, total):
        run = session.prepared({"input_ids": tokens, "attention_mask": np.ones((1, total), np.int64), **caches}, shared)
        since = time.perf_counter()
        run.go()
        logits = run.results()["logits"]
        following = int(np.argmax(logits[0, -1]))
        return following, (time.perf_counter() - since) * 1e3

    prompts, steps = [], []
    for k in range(a.repetitions + 1):  # one to warm up
        token, first = timed(prompt, a.prompt)
        each = []
        for i in range(a.steps):
            token, ms = timed(np.array([[token]]), a.prompt + i + 1)
            each.append(ms)
        if k > 0:
            prompts.append(first)
            steps.append(sum(each) / len(each))
    return dict(load_ms=load * 1e3, prompt_ms=statistics.median(prompts), step_ms=statistics.median(steps))


def kiln(a, folder):
    program = os.path.join(a.build, "bin/kiln")
    said = subprocess.run([program, "genai", "bench", folder, "--threads", str(a.threads), "-l", str(a.prompt), "-g", str(a.steps + 1),
                           "-r", str(a.repetitions), "-w", "1", "--json"], check=True, capture_output=True, text=True).stdout
    said = json.loads(said)
    return dict(prompt_ms=said["Prompt Processing Latency (ms)"], step_ms=said["Token Generation Latency (ms)"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    for name, n in dict(threads=2, rounds=3, prompt=512, steps=48, repetitions=2, layers=22, vocabulary=32000).items():
        p.add_argument("--" + name, type=int, default=n)
    p.add_argument("--onnxruntime", help=argparse.SUPPRESS)  # a process of its own: its workers spin beside nobody
    a = p.parse_args()
    if a.onnxruntime:
        return print(json.dumps(onnxruntime(a, a.onnxruntime)))
    if not oracle.library(os.path.join(ROOT, "build/peer")):
        print("SKIPPED: ONNX Runtime is not in build/peer (cmake/peer.sh)", file=sys.stderr)
        sys.exit(77)
    of = {level: os.path.join(ROOT, f"build/bench_language/int4_{a.layers}_{a.vocabulary}_{level}") for level in (0, 4)}
    if not all(os.path.exists(os.path.join(folder, "model.onnx")) for folder in of.values()):
        write_models(a, of)
    other = [sys.executable, __file__, *sys.argv[1:], "--onnxruntime", of[4]]
    rows = {"ONNX Runtime, accuracy_level 4": lambda: json.loads(subprocess.run(other, check=True, capture_output=True, text=True).stdout),
            "kiln, the same file": lambda: kiln(a, of[4]), "kiln, accuracy_level 0": lambda: kiln(a, of[0])}
    all_times = {name: [] for name in rows}
    for _ in range(a.rounds):
        for name, run in rows.items():
            all_times[name].append(run())
            print(name, json.dumps(all_times[name][-1]), file=sys.stderr)
    middle = {n: {k: statistics.median(t[k] for t in times) for k in ("prompt_ms", "step_ms")} for n, times in all_times.items()}
    peer = next(iter(middle.values()))
    print(f"| | prompt of {a.prompt}, ms | a step, ms | tokens a second | ONNX Runtime's time over it: prompt | step |\n|---|---|---|---|---|---|")
    for name, m in middle.items():
        print(f"| {name} | {m['prompt_ms']:.0f} | {m['step_ms']:.1f} | {1000 / m['step_ms']:.1f} | "
              f"{peer['prompt_ms'] / m['prompt_ms']:.2f} | {peer['step_ms'] / m['step_ms']:.2f} |")


if __name__ == "__main__":
    main()
