#!/usr/bin/python3
"""Makes the page of docs/performance_device.md from what bench_operators_device printed.

    device.py RESULTS.tsv DEVICE > docs/performance_device.md

DEVICE names the card. Needs Python alone.
"""
import collections
import os
import statistics
import sys


def read(path):
    tops, rows, failed = {}, [], []
    with open(path) as lines:
        for line in lines:
            f = line.rstrip("\n").split("\t")
            if f[0] == "#":
                tops[f[1]] = float(f[2])
            elif f[2] == "ok":
                us, kernels, gb, gflop, bound = (float(x) for x in f[3:8])
                rows.append(dict(name=f[1], us=us, kernels=int(kernels), gb=gb, gflop=gflop, bound=bound, by=f[8],
                                 steps=f[10], host="(host" in f[10] or bool(f[9]), share=bound / us))
            else:
                failed.append((f[1], f[3]))
    return tops, rows, failed


def line(r):
    rate = f"{r['gflop'] / 1e3:.1f} TFLOP/s" if r["by"] == "products" else f"{r['gb']:.0f} GB/s"
    host = "yes" if r["host"] else ""
    return f"| {r['name']} | {r['us']:.1f} | {rate} | {r['share']:.2g} | {r['by']} | {host} |"


def main():
    tops, rows, failed = read(sys.argv[1])
    with open(os.path.join(os.path.dirname(__file__), "page_device.md")) as page:
        print(page.read().replace("{device}", sys.argv[2]).replace("{cases}", str(len(rows)))
              .replace("{ceilings}", ", ".join(f"{n} {v:g}" for n, v in tops.items())).rstrip())
    shares = [r["share"] for r in rows]
    print(f"\n{len(rows)} cases ran, {len(failed)} did not. Of all, {sum(s >= .8 for s in shares)} reach 80 % of their bound, "
          f"{sum(.5 <= s < .8 for s in shares)} reach half, {sum(s < .5 for s in shares)} less; the median is "
          f"{statistics.median(shares):.2f}.\n")
    print("| bound by | cases | median share | below half |\n|---|---|---|---|")
    for by in "memory", "products", "launches":
        of = [r["share"] for r in rows if r["by"] == by]
        print(f"| {by} | {len(of)} | {statistics.median(of or [0]):.2f} | {sum(s < .5 for s in of)} |")
    groups = collections.defaultdict(list)
    for r in rows:
        groups[r["name"].split()[0]].append(r)
    print("\n## By operator\n\nThe worst case of each, the worst operators first.\n")
    print("| operator | cases | median share | its worst case | us | reached | share | bound by | steps on the host |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for name, of in sorted(groups.items(), key=lambda g: min(r["share"] for r in g[1])):
        worst = min(of, key=lambda r: r["share"])
        print(f"| {name} | {len(of)} | {statistics.median(r['share'] for r in of):.2g} {line(worst)}")
    if failed:
        print("\n## What did not run\n")
        for name, why in failed:
            print(f"- {name}: {' '.join(why.split())[:110]}")


if __name__ == "__main__":
    main()
