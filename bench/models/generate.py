#!/usr/bin/python3
"""Writes ONNX models of true size with seeded random weights, for bench/versus_onnxruntime.

    generate.py DIRECTORY [--small] [--only NAME[,NAME...]] [--seed N] [--list] [--corpus]

Weights are scaled so that activations stay near 1. All of them take about 4 GB; --small writes the same graphs shrunk.
--corpus takes the networks of many kinds instead, at several batches, and writes their list (cases.txt) for
bench_operators. A file that is there already stays. Needs python3-onnx 1.12 or newer and python3-numpy.
"""
import argparse
import os

import byte_ops  # noqa: F401  registers its models
import convolutional  # noqa: F401
import images  # noqa: F401
import language  # noqa: F401
import layers  # noqa: F401
import mobile  # noqa: F401
import network
import speech  # noqa: F401
import transformers  # noqa: F401
import vision  # noqa: F401
from graph import MODELS


def save(path, make):
    """Writes the model of make() unless the file is there."""
    if os.path.exists(path):
        return
    with open(path + ".part", "wb") as f:
        f.write(make().proto().SerializeToString())
    os.rename(path + ".part", path)
    print(path, flush=True)


def save_corpus(directory, names, small, seed):
    with open(os.path.join(directory, "cases.txt"), "w") as listed:
        for n in names:
            g, runs = network.build(n, small, seed)
            save(os.path.join(directory, n + ".onnx"), lambda: g)
            for batch in runs:
                name = n if len(runs) == 1 and not n.endswith("dynamic") else f"{n}, {batch}"
                listed.write("\t".join([name, n + ".onnx", "1e-3"] + g.listed(batch)) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", nargs="?")
    p.add_argument("--small", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--list", action="store_true")
    p.add_argument("--corpus", action="store_true")
    a = p.parse_args()
    known = network.NETWORKS if a.corpus else MODELS
    if a.list or not a.directory:
        print("\n".join(known))
        return
    names = [n for n in a.only.split(",") if n] or list(known)
    unknown = [n for n in names if n not in known]
    if unknown:
        p.error(f"unknown model {unknown[0]}; --list names those that there are")
    os.makedirs(a.directory, exist_ok=True)
    if a.corpus:
        return save_corpus(a.directory, names, a.small, a.seed)

    def typed(n):
        g = MODELS[n](a.small, a.seed)
        g.infer()
        return g
    for n in names:
        save(os.path.join(a.directory, n + ".onnx"), lambda: typed(n))


if __name__ == "__main__":
    main()
