#!/usr/bin/python3
"""Writes the models of bench/operators and their list, for bench_operators.

    generate.py DIRECTORY [--only TEXT] [--list] [--large] [--jobs N]

--large writes the large case of each operator alone, --jobs as many files at a time. Needs python3-onnx 1.12 or newer
and python3-numpy. All of them take about 1 GB and two minutes.
"""
import argparse
import multiprocessing
import os
import re

import contrib  # noqa: F401  a table registers its cases
import index  # noqa: F401
import linear  # noqa: F401
import normalize  # noqa: F401
import pointwise  # noqa: F401
import quantized  # noqa: F401
import recurrent  # noqa: F401
import reduce  # noqa: F401
import sample  # noqa: F401
import signal_ops  # noqa: F401
from case import CASES


def write(job):
    """Writes a case's model; its line of the list."""
    name, directory = job
    model, limit, fields = CASES[name]()
    file = re.sub("[^A-Za-z0-9.]+", "_", name) + ".onnx"
    with open(os.path.join(directory, file), "wb") as f:
        f.write(model.SerializeToString())
    return "\t".join([name, file, limit] + fields) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", nargs="?")
    p.add_argument("--only", default="")
    p.add_argument("--list", action="store_true")
    p.add_argument("--large", action="store_true")
    p.add_argument("--jobs", type=int, default=1)
    a = p.parse_args()
    names = [n for n in CASES if a.only in n]
    if a.large:
        names = list({n.rsplit(" ", 1)[0]: n for n in names}.values())
    if a.list or not a.directory:
        print("\n".join(names))
        return
    os.makedirs(a.directory, exist_ok=True)
    with multiprocessing.Pool(a.jobs) as pool, open(os.path.join(a.directory, "cases.txt"), "w") as listed:
        listed.writelines(pool.imap(write, [(n, a.directory) for n in names], 4))


if __name__ == "__main__":
    main()
