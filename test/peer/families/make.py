#!/usr/bin/python3
"""Writes a small language model of each family and what ONNX Runtime continues prompts with, token by token.

    make.py DIRECTORY ONNXRUNTIME_FOLDER [--only NAME[,NAME...]]

DIRECTORY/NAME/ gets model.onnx, genai_config.json and expected.json: prompts, all tokens, and the logits of each prompt's
last token. A seed is taken whose best token is ahead of the second by a margin in every step, so that rounding can't
change it. Exits with 77 where ONNX Runtime or python3-onnx is missing.
"""
import argparse
import json
import os
import shutil
import sys

try:
    import numpy as np
    import onnx  # noqa: F401
except ImportError as e:
    print(f"SKIPPED: {e} (python3-onnx, python3-numpy)")
    sys.exit(77)

import families
import oracle


def expand(session, model, tokens, total, caches):
    """A run's inputs: `tokens` follow those of the caches."""
    integer = np.int32 if model.attention == "gpt2" else np.int64
    given = {"input_ids": np.array([tokens], integer), "attention_mask": np.ones((1, total), integer)}
    if "position_ids" in session.inputs:
        positions = np.arange(total - len(tokens), total, dtype=integer)[None]
        given["position_ids"] = np.stack([positions] * model.axes) if model.axes > 1 else positions
    return {**given, **caches}


def empty_caches(model):
    """Caches before the first token; a buffer for all of them where the operator wants one."""
    room = model.context if model.attention == "sparse" else 0
    sizes = {"batch_size": 1, "past_sequence_length": room}
    of = {v.name: v.type.tensor_type for v in model.inputs}
    return {past: np.zeros([sizes.get(d.dim_param, d.dim_value) for d in of[past].shape.dim], model.dtype) for past, _ in model.caches}


def greedy(session, model, prompt, steps):
    """All tokens, the first logits, and the least distance of the best logit from the second, as a part of their spread."""
    tokens, caches, first, margin = list(prompt), empty_caches(model), None, np.inf
    shared = [(present, past) for past, present in model.caches] if model.attention == "sparse" else []
    border = model.long_rope + 1 if model.long_rope else 0
    run = 0
    for _ in range(steps):
        if run < border <= len(tokens):  # angles change: the caches are of no use
            caches, run = empty_caches(model), 0
        made = session.run(expand(session, model, tokens[run:], len(tokens), caches), shared)
        run = len(tokens)
        logits = made["logits"][0, -1].astype(np.float64)
        first = logits if first is None else first
        best = np.sort(logits)
        margin = min(margin, (best[-1] - best[-2]) / (best[-1] - best[0]))
        caches = {past: made[present] for past, present in model.caches}
        tokens.append(int(np.argmax(logits)))
    return tokens, first, margin


def saved(model, folder, file):
    path = os.path.join(folder, file)
    with open(path, "wb") as f:
        f.write(model.proto().SerializeToString())
    return path


def write(folder, name, library):
    for seed in range(families.SEEDS.get(name, 1), 1000):
        model = families.make(name, seed)
        path = saved(model, folder, "model.onnx")
        session = oracle.Session(library, saved(families.make(name, seed, twin=True), folder, "twin.onnx") if model.three else path)
        rng = np.random.default_rng(seed)
        rows = []
        for length in model.prompt:
            prompt = [int(t) for t in rng.integers(2, model.vocab - 1, length)]
            tokens, logits, margin = greedy(session, model, prompt, model.steps)
            rows.append(dict(prompt=prompt, tokens=tokens, logits=logits.tolist()))
            if margin < (4e-3 if model.dtype == np.float16 else 2e-3) or model.vocab - 1 in tokens:
                break
        else:
            break
    else:
        sys.exit(f"{name}: no seed keeps the best token ahead")
    half = model.dtype == np.float16
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(dict(tolerance=1e-2 if half else 1e-4, rows=rows), f)
    if model.config != {}:
        with open(os.path.join(folder, "genai_config.json"), "w") as f:
            json.dump(model.settings(), f, indent=1)
    return seed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory")
    p.add_argument("onnxruntime")
    p.add_argument("--only", default="")
    a = p.parse_args()
    library = oracle.library(a.onnxruntime)
    if library is None:
        print("SKIPPED: ONNX Runtime is not in " + a.onnxruntime)
        sys.exit(77)
    wanted = [n for n in a.only.split(",") if n] or list(families.FAMILIES)
    unknown = [n for n in wanted if n not in families.FAMILIES]
    if unknown:
        p.error(f"unknown family {unknown[0]}; there are {', '.join(families.FAMILIES)}")
    for name in wanted:
        folder = os.path.join(a.directory, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        print(name, "seed", write(folder, name, library), flush=True)


if __name__ == "__main__":
    main()
