#!/usr/bin/python3
"""Makes tables of the lines that bench_operators printed (its head says what they hold).

    report.py RESULTS.tsv... [--markdown] [--networks] [--wrong] [--worst N]

Plain: the worst twenty and the geometric mean; --markdown: a page of all; --networks: columns of whole networks;
--wrong: cases that differ or fail alone.
Of a case that was measured twice the later line counts.
"""
import argparse
import math
import os
import re
import sys
from collections import namedtuple

Row = namedtuple("Row", "name kiln peer ratio best load load_ms apart references kernels bound memory wrong")


def read(files):
    rows, bad, dropped = {}, {}, {}
    for file in files:
        for line in open(file):
            f = line.rstrip("\n").split("\t")
            for held in (rows, bad, dropped):
                held.pop(f[0], None)
            if f[1] in ("ok", "wrong"):
                n = [float(v) for v in f[2:9]]
                rows[f[0]] = Row(f[0], *n, f[9], f[10], float(f[11]), f[12:], f[1] == "wrong")
            else:
                (dropped if f[1] == "dropped" else bad)[f[0]] = f[2] if len(f) > 2 else ""
    return rows, bad, dropped


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def over_bound(r):
    """How many times its bound kiln takes; empty where a step's operations and bytes are not known."""
    return f"{r.kiln / r.bound:.1f}" if r.bound > 0 else ""


def table(rows):
    print("| case | kiln us | ONNX Runtime us | ratio | bound us | of bound | difference | reference |\n|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r.name} | {r.kiln:.4g} | {r.peer:.4g} | {r.ratio:.2f} | {r.bound:.3g} | {over_bound(r)} "
              f"| {r.apart:.0e}{' wrong' if r.wrong else ''} | {r.references.replace(' (reference)', '')} |")


def families(rows):
    """Geometric means of an operator's cases, worst first."""
    of = {}
    for r in rows:
        of.setdefault(r.name.split()[0].rstrip(","), []).append(r)
    print("| operator | cases | mean ratio | worst | reference |\n|---|---|---|---|---|")
    for name, some in sorted(of.items(), key=lambda i: mean([r.ratio for r in i[1]])):
        print(f"| {name} | {len(some)} | {mean([r.ratio for r in some]):.2f} | {min(r.ratio for r in some):.2f} "
              f"| {sum(bool(r.references) for r in some) or ''} |")


def summary(rows):
    below = [sum(r.ratio < limit for r in rows) for limit in (0.5, 0.95, 1.1)]
    print(f"Geometric mean of {len(rows)} cases: {mean([r.ratio for r in rows]):.2f}. Below 0.5: {below[0]}, below 0.95: {below[1]}, "
          f"below 1.1: {below[2]} ({sum(r.ratio < 1.1 and 0 < r.kiln < 1.25 * r.bound for r in rows)} of these within 1.25 of their bound). With a step that is the op's reference computation: {sum(bool(r.references) for r in rows)}.\n")


def networks(rows):
    print("| network | kiln ms | ONNX Runtime ms | ratio | ratio of best | bound ms | of bound | load ratio | load ms | peak MiB | ONNX Runtime's MiB | difference | reference |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        memory = [m for m in r.memory if re.fullmatch("[0-9.]+", m)]
        memory = memory if len(memory) == 2 else ["", ""]
        print(f"| {r.name} | {r.kiln / 1e3:.4g} | {r.peer / 1e3:.4g} | {r.ratio:.2f} | {r.best:.2f} | {r.bound / 1e3:.3g} | {over_bound(r)} | {r.load:.2f} | {r.load_ms:.4g} | {memory[0]} "
              f"| {memory[1]} | {r.apart:.0e}{' wrong' if r.wrong else ''} | {r.references.replace(' (reference)', '')} |")
    print(f"| geometric mean of {len(rows)} | | | {mean([r.ratio for r in rows]):.2f} | {mean([r.best for r in rows]):.2f} "
          f"| | | {mean([r.load for r in rows]):.2f} | | | | | |")


def page(name):
    """Prints the head of a page, beside this file, with what the machine is."""
    processor = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)) as head:
        print(head.read().format(processor=processor, processors=os.cpu_count(), load=open("/proc/loadavg").read().split()[0]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+")
    p.add_argument("--markdown", action="store_true")
    p.add_argument("--networks", action="store_true")
    p.add_argument("--wrong", action="store_true")
    p.add_argument("--worst", type=int, default=20)
    a = p.parse_args()
    found, bad, dropped = read(a.files)
    rows = sorted(found.values(), key=lambda r: r.ratio)
    if a.wrong:
        for r in rows:
            if r.wrong:
                print(f"| {r.name} | differs by {r.apart:.2g} | {r.kernels} |")
        for name, why in bad.items():
            print(f"| {name} | kiln: {why} | |")
        return
    if a.markdown:
        page("../models/page.md" if a.networks else "page.md")
    if a.networks:
        networks(rows)
    elif a.markdown:
        summary(rows)
        print("## By operator\n")
        families(rows)
        print("\n## All cases, the worst first\n")
        table(rows)
    else:
        summary(rows)
        table(rows[:a.worst])
    if bad:
        print("\nkiln can't run:\n")
        for name, why in bad.items():
            print(f"- {name}: {why}")
    if dropped and (a.markdown or a.networks):
        print("\nDropped, for ONNX Runtime can't run them:\n")
        print(", ".join(dropped) + ".")
    sys.exit(1 if bad or any(r.wrong for r in rows) else 0)


if __name__ == "__main__":
    main()
