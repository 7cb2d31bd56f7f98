#!/usr/bin/python3
"""Times the large case of each operator of the corpus on a device, with kiln perf: what its kernels reach beside a large
copy and a large product there. Prints a table in Markdown as cases end, and a summary. A case takes one to two seconds.

    device.py KILN CASES.txt [--target hip] [--only TEXT] [--warm N]

With --warm each case runs once before, N at a time, so that the cache holds the kernels. Needs Python alone.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import statistics
import subprocess


def large_cases(path, only):
    groups = collections.OrderedDict()
    with open(path) as lines:
        for line in lines:
            name, file, _, *inputs = line.rstrip("\n").split("\t")
            if only in name:
                groups[name.rsplit(" ", 1)[0]] = (name, file, inputs)
    return list(groups.values())


def perf(a, folder, case, budget):
    name, file, inputs = case
    command = [a.kiln, "perf", os.path.join(folder, file), "--target", a.target, "--per-kernel", "--json",
               "--budget-ms", str(budget)]
    for one in inputs:
        command += ["--shape", "=".join(one.split("|")[:2])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as e:
        return {"error": str(e)}


def row_of(name, found):
    if "steps" not in found:
        return name, None, str(found.get("message", found.get("error", "failed")))[:120].replace("|", "/").replace("\n", " ")
    steps, top = found["steps"], found["ceilings"]
    ms = sum(s["ms"] for s in steps) or 1e-9
    bytes_, flops = (sum(s[k] * s["ms"] for s in steps) / ms for k in ("gb_s", "gflops"))
    share = max(bytes_ / top["gb_s"], flops / top["gflops"])
    return name, share, (ms * 1e3, len(steps), bytes_, flops, sum(s["fallback"] for s in steps))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("kiln")
    p.add_argument("cases")
    p.add_argument("--target", default="hip")
    p.add_argument("--only", default="")
    p.add_argument("--warm", type=int, default=0)
    a = p.parse_args()
    folder, cases = os.path.dirname(a.cases) or ".", large_cases(a.cases, a.only)
    if a.warm:
        with concurrent.futures.ThreadPoolExecutor(a.warm) as pool:
            list(pool.map(lambda c: perf(a, folder, c, 1), cases))
    print("| case | us | kernels | GB/s | GFLOP/s | of the nearer bound | on the host |\n|---|---|---|---|---|---|---|")
    rows = []
    for c in cases:
        name, share, rest = row = row_of(c[0], perf(a, folder, c, 15))
        rows.append(row)
        if share is None:
            print(f"| {name} | {rest} | | | | | |", flush=True)
        else:
            us, kernels, rate, flops, host = rest
            print(f"| {name} | {us:.1f} | {kernels} | {rate:.0f} | {flops:.0f} | {share:.2f} | {host or ''} |", flush=True)
    shares = [r[1] for r in rows if r[1] is not None]
    print(f"\n{len(rows)} cases: {len(rows) - len(shares)} did not run, {sum(s < 0.5 for s in shares)} below half of "
          f"their bound, median {statistics.median(shares or [0]):.2f}, "
          f"{sum(r[1] is not None and r[2][4] > 0 for r in rows)} with a step on the host")


if __name__ == "__main__":
    main()
