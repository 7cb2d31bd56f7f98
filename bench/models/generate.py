#!/usr/bin/python3
"""Writes ONNX models of true size with seeded random weights, for bench/versus_onnxruntime.

    generate.py DIRECTORY [--small] [--only NAME[,NAME...]] [--seed N] [--list]

Weights are scaled so that activations stay near 1. All of them take about 4 GB; --small writes the same graphs shrunk.
A file that is there already stays. Needs python3-onnx 1.12 or newer and python3-numpy.
"""
import argparse
import os

import byte_ops  # noqa: F401  registers its models
import convolutional  # noqa: F401
import layers  # noqa: F401
import transformers  # noqa: F401
from graph import MODELS


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", nargs="?")
    p.add_argument("--small", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if a.list or not a.directory:
        print("\n".join(MODELS))
        return
    names = [n for n in a.only.split(",") if n] or list(MODELS)
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        p.error(f"unknown model {unknown[0]}; --list names those that there are")
    os.makedirs(a.directory, exist_ok=True)
    for n in names:
        path = os.path.join(a.directory, n + ".onnx")
        if os.path.exists(path):
            continue
        g = MODELS[n](a.small, a.seed)
        g.infer()
        with open(path + ".part", "wb") as f:
            f.write(g.proto().SerializeToString())
        os.rename(path + ".part", path)
        print(path, flush=True)


if __name__ == "__main__":
    main()
