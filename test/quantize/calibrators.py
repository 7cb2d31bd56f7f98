"""calibrators.py PROGRAM FOLDER: the ranges that choose_ranges prints equal those of the algorithms written in numpy."""
import subprocess
import sys

import numpy as np

MOST_BINS = 16384


class Histogram:
    """Counts on (-t, t), sample by sample; wider samples add bins, and bins merge where they become too many."""

    def __init__(self, bins):
        self.hist, self.reach, self.most = np.zeros(bins, np.int64), 0.0, max(2 * bins, MOST_BINS)

    def merge(self):
        each = 3 if len(self.hist) % 2 else 2
        half = len(self.hist) // 2
        pad = next(p for p in range(3) if (half + p) % each == (1 if each == 3 else 0))
        stride = 2 * self.reach / len(self.hist)
        self.hist = np.pad(self.hist, pad).reshape(-1, each).sum(axis=1)
        self.reach += pad * stride

    def add(self, x):
        reach = np.abs(x).max(initial=0)
        if self.reach == 0 or reach <= self.reach:
            self.reach = self.reach or reach
            self.hist += np.histogram(x, len(self.hist), range=(-self.reach, self.reach))[0]
            return
        while True:
            stride = 2 * self.reach / len(self.hist)
            more = int((reach - self.reach) // stride + 1)
            if len(self.hist) + 2 * more <= self.most:
                break
            self.merge()
        self.hist, self.reach = np.pad(self.hist, more), more * stride + self.reach
        self.hist += np.histogram(x, len(self.hist), range=(-self.reach, self.reach))[0]

    def edges(self):
        reach = self.reach or 0.5
        return np.linspace(-reach, reach, len(self.hist) + 1)


class Magnitudes:
    """Counts from the first sample's least magnitude on."""

    def __init__(self, bins):
        self.bins, self.hist, self.most = bins, None, max(2 * bins, MOST_BINS)

    def add(self, x):
        x = np.abs(x)
        if self.hist is None:
            self.hist, self.limits = np.histogram(x, self.bins)
            return
        width = self.limits[1] - self.limits[0]
        while len(self.hist) + np.ceil((x.max() - self.limits[-1]) / width) > self.most:
            if len(self.hist) % 2:
                self.hist, self.limits = np.append(self.hist, 0), np.append(self.limits, self.limits[-1] + width)
            self.hist, self.limits = self.hist.reshape(-1, 2).sum(axis=1), self.limits[::2]
            width *= 2
        if x.max() > self.limits[-1]:
            more = np.arange(self.limits[-1] + width, x.max() + width, width)
            self.limits = np.append(self.limits, more)
            self.hist = np.append(self.hist, np.zeros(len(more), np.int64))
        self.hist = self.hist + np.histogram(np.maximum(x, self.limits[0]), self.limits)[0]

    def edges(self):
        return self.limits


def smooth(p):
    zeros = (p == 0).sum()
    if zeros == len(p) or 1e-4 * zeros / (len(p) - zeros) >= 1:
        return None
    return np.where(p == 0, 1e-4, p - 1e-4 * zeros / (len(p) - zeros))


def entropy_range(h, levels):
    hist, edges, zero = h.hist, h.edges(), len(h.hist) // 2
    best = np.inf, (edges[zero - levels // 2], edges[min(zero + levels // 2 + 1, len(hist))])
    for half in range(levels // 2, zero + 1):
        begin, end = zero - half, min(zero + half + 1, len(hist))
        inner = hist[begin:end]
        p = inner.astype(float)
        p[0] += hist[:begin].sum()
        p[-1] += hist[end:].sum()
        each = len(inner) // levels
        codes = inner[: levels * each].reshape(levels, each).sum(axis=1)
        codes[-1] += inner[levels * each :].sum()
        filled = (p[: levels * each] != 0).reshape(levels, each).sum(axis=1)
        q = np.zeros(len(p))
        q[: levels * each] = np.repeat(np.where(filled, codes // np.maximum(filled, 1), 0), each)
        p, q = smooth(p), smooth(q)
        if p is not None and q is not None:
            p, q = p / p.sum(), q / q.sum()
            best = min(best, ((p * np.log(p / q)).sum(), (edges[begin], edges[end])), key=lambda b: b[0])
    return best[1]


def percentile_range(h, percent, symmetric):
    cdf, edges = np.cumsum(h.hist / h.hist.sum()), h.edges()
    if symmetric:
        end = edges[np.searchsorted(cdf, percent / 100)]
        return -end, end
    cut = (100 - percent) / 200
    return edges[np.searchsorted(cdf, cut)], edges[np.searchsorted(cdf, 1 - cut)]


def min_max(samples, o):
    axes = tuple(i for i in range(samples[0].ndim) if not (o["per_channel"] and i == 1))
    total = None
    size = o["batch"] or len(samples)
    for at in range(0, len(samples), size):
        low = np.array([x.min(axis=axes) for x in samples[at : at + size]], float)
        high = np.array([x.max(axis=axes) for x in samples[at : at + size]], float)
        low, high = (low.mean(0), high.mean(0)) if o["moving_average"] else (low.min(0), high.max(0))
        if o["symmetric"] == 1:
            high = np.maximum(np.abs(low), np.abs(high))
            low = -high
        if total is None:
            total = low, high
        elif o["moving_average"]:
            total = [t + o["averaging_constant"] * (n - t) for t, n in zip(total, (low, high))]
        else:
            total = np.minimum(total[0], low), np.maximum(total[1], high)
    return total


def expected(samples, o):
    if o["method"] == "min_max":
        whole = min_max(samples, {**o, "per_channel": 0})
        channels = np.stack(min_max(samples, o), axis=-1).ravel() if o["per_channel"] else []
        return [*whole, *channels]
    flat = [x.astype(float).ravel() for x in samples]
    low, high = min(x.min() for x in flat), max(x.max() for x in flat)
    symmetric = o["symmetric"] == 1 or (o["symmetric"] == "-" and o["method"] == "percentile")
    h = (Magnitudes if symmetric and o["method"] == "percentile" else Histogram)(o["bins"])
    for x in flat:
        h.add(x)
    if o["method"] == "distribution":
        middle = (h.edges()[:-1] + h.edges()[1:]) / 2
        if o["scenario"] == "p3":
            middle = np.cbrt(middle)
        mean = (h.hist * middle).sum() / h.hist.sum()
        return [h.edges()[0], h.edges()[-1], mean, ((h.hist * middle**2).sum() / h.hist.sum() - mean**2) ** 0.5]
    if o["method"] == "entropy":
        r = entropy_range(h, o["quantized_bins"])
    else:
        r = percentile_range(h, o["percentile"], symmetric)
    r = max(r[0], low), min(r[1], high)
    r = r if r[0] <= r[1] else (low, high)
    if symmetric and o["method"] == "entropy":
        r = -max(map(abs, r)), max(map(abs, r))
    return r


def data(rng):
    """Samples whose extents differ, except for the channels."""
    shapes = [(2, 3, 40), (1, 3, 500), (3, 3, 64), (1, 3, 7), (4, 3, 111), (1, 3, 1000)]
    draw = {
        "normal": lambda s: rng.normal(0.1, 1, s),
        "cauchy": lambda s: np.clip(rng.standard_cauchy(s), -300, 300),
        "laplace": lambda s: rng.laplace(0, 3, s),
        "positive": lambda s: rng.uniform(3, 5, s),
        "negative": lambda s: -rng.exponential(2, s) - 1,
        "relu": lambda s: np.maximum(rng.normal(0, 1, s), 0),
        "tiny": lambda s: rng.normal(0, 1e-6, s),
        "channels": lambda s: rng.normal(0, 1, s) * np.array([1, 10, 0.1]).reshape(1, 3, 1),
    }
    out = {name: [d(s).astype(np.float32) for s in shapes] for name, d in draw.items()}
    out["growing"] = [x * np.float32(2**i) for i, x in enumerate(out["normal"])]
    return out


def options():
    base = dict(method="min_max", symmetric="-", moving_average=0, averaging_constant=0.01, per_channel=0, bins=128,
                quantized_bins=128, percentile=99.999, scenario="same", batch=0)
    for symmetric in (0, 1):
        for moving in (0, 1):
            for batch, constant in ((0, 0.01), (1, 0.01), (2, 0.3)):
                for channels in (0, 1):
                    yield {**base, "symmetric": symmetric, "moving_average": moving, "batch": batch,
                           "averaging_constant": constant, "per_channel": channels}
        for bins, levels in ((128, 128), (512, 128), (2048, 128), (301, 101), (257, 256))[: 2 if symmetric else 5]:
            yield {**base, "method": "entropy", "symmetric": symmetric, "bins": bins, "quantized_bins": levels}
        for bins in (100, 2048, 1001):
            for percent in (99.999, 99, 90, 50, 0):
                yield {**base, "method": "percentile", "symmetric": symmetric, "bins": bins, "percentile": percent}
    for bins in (512, 2048):
        for scenario in ("same", "p3"):
            yield {**base, "method": "distribution", "bins": bins, "scenario": scenario}
    yield {**base, "method": "percentile", "bins": 2048}
    yield {**base, "method": "entropy"}


def main(program, folder):
    cases, wanted, lines = data(np.random.default_rng(20)), {}, []
    for name, samples in cases.items():
        np.concatenate([x.ravel() for x in samples]).tofile(f"{folder}/{name}.f32")
        for i, o in enumerate(options()):
            case = f"{name}.{i}"
            wanted[case] = o, np.array(expected(samples, o), float)
            fields = [v for k, v in o.items()] + ["x".join(map(str, x.shape)) for x in samples]
            lines.append(" ".join(map(str, [case, f"{folder}/{name}.f32", *fields])))
    with open(f"{folder}/cases.txt", "w") as f:
        f.write("\n".join(lines) + "\n")
    printed = subprocess.run([program, f"{folder}/cases.txt"], check=True, capture_output=True, text=True).stdout
    bad, found = 0, dict((line.split(" ", 1) for line in printed.splitlines()))
    for case, (o, numbers) in wanted.items():
        got = np.array(found[case].split(), float)
        if got.shape != numbers.shape or not np.allclose(got, numbers, rtol=1e-6, atol=1e-12):
            bad += 1
            print(f"{case} {o}: expected {numbers}, found {got}")
    print(f"{len(wanted)} cases, {bad} differ")
    return bad != 0 or len(wanted) < 500


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
