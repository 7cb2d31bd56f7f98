"""What a call from Python costs beyond the run: `exe(x=array)` of a tiny perceptron against the same run's time in C++
(bench_python_overhead prints it), and how threads scale. Run with PYTHONPATH=build/release/python."""

import os
import subprocess
import sys
import threading
import time
import timeit

import kiln
import numpy as np

b = kiln.Builder()
x = b.input("x", "f32", [kiln.symbol("batch", 1), 2])
hidden = (x.dot(b.weight("w1", "f32", [2, 2])) + b.weight("b1", "f32", [2])).relu()
b.output(hidden @ b.weight("w2", "f32", [2, 1]) + b.weight("b2", "f32", [1]), "y")
weights = {"w1": [[1, 1], [1, 1]], "b1": [0, -1], "w2": [[1], [-2]], "b2": [0]}
mlp = kiln.compile(b, weights=weights, threads=1)
one = np.array([[1, 0]], np.float32)
held = kiln.tensor(one)


def microseconds(f, number=50000):
    return min(timeit.repeat(f, number=number, repeat=9)) / number * 1e6


ways = {
    "exe(x=array)": lambda: mlp(x=one),
    "exe(array)": lambda: mlp(one),
    "exe(x=Tensor)": lambda: mlp(x=held),
    "np.asarray(exe(x=array))": lambda: np.asarray(mlp(x=one)),
}
for name, call in ways.items():
    print(f"{microseconds(call):7.2f} us  {name}")
program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bench/bench_python_overhead"
if os.path.exists(program):
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    print(out, end="")

b = kiln.Builder()
x = b.input("x", "f32", [256, 256])
y = x
for _ in range(8):
    y = y @ x
b.output(y, "y")
exe = kiln.compile(b, threads=1)
a = np.full((256, 256), 1 / 256, np.float32)


def seconds(threads, runs=300):
    all_threads = [threading.Thread(target=lambda: [exe(x=a) for _ in range(runs)]) for _ in range(threads)]
    start = time.perf_counter()
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    return time.perf_counter() - start


seconds(2)
alone = min(seconds(1) for _ in range(5))
for n in (2, 4):
    print(f"{n * alone / min(seconds(n) for _ in range(5)):7.2f}     times the runs a second of one thread, by {n} threads")
