#!/usr/bin/env python3
"""Times torchvision's networks and PyTorch's layers in kiln.torch beside eager PyTorch: medians of interleaved runs with
two threads, and what compilation takes. `versus_eager.py [--size N] [--runs N] [NAME...]`; PYTHONPATH names kiln's folder."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

import kiln.torch
import torch
from torch import nn
from torchvision import models

THREADS = 2


def networks(size: int) -> dict[str, Any]:
    """Functions that make a module and its inputs, by name."""
    image = torch.randn(1, 3, size, size)
    vision = {
        name: lambda name=name: (getattr(models, name)(weights=None), (image,))
        for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "densenet121", "squeezenet1_1",
                     "shufflenet_v2_x1_0", "efficientnet_b0", "convnext_tiny", "swin_t")
    }
    whole = {"weights": None, "weights_backbone": None}
    return {
        **vision,
        "vit_b_16": lambda: (models.vit_b_16(weights=None, image_size=size), (image,)),
        "fcn_resnet50": lambda: (models.segmentation.fcn_resnet50(**whole), (image,)),
        "deeplabv3": lambda: (models.segmentation.deeplabv3_mobilenet_v3_large(**whole), (image,)),
        "maskrcnn.backbone": lambda: (models.detection.maskrcnn_resnet50_fpn(**whole).backbone, (image,)),
        "transformer": lambda: (nn.Transformer(256, 8, 2, 2, 1024), (torch.randn(64, 1, 256), torch.randn(64, 1, 256))),
        "lstm": lambda: (nn.LSTM(128, 256, 2), (torch.randn(64, 1, 128),)),
        "gru": lambda: (nn.GRU(128, 256, 2), (torch.randn(64, 1, 128),)),
        "perceptron": lambda: (nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), (torch.randn(1, 64),)),
    }


def timed(f: Any, inputs: Any) -> float:
    f(*inputs)  # the threads of the other one have come to rest, and the caches are its own
    begin = time.perf_counter()
    f(*inputs)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    print(f"| network | eager, ms | kiln, ms | times | compiled in, s | programs | error |\n|{'---|' * 7}")
    ratios = []
    for name, make in networks(given.size).items():
        if given.names and name not in given.names:
            continue
        module, inputs = make()
        module.eval()
        begin = time.perf_counter()
        compiled = kiln.torch.compile(module, inputs, threads=THREADS)
        seconds = time.perf_counter() - begin
        with torch.no_grad():
            eager, own = [], []
            for _ in range(given.runs):
                eager.append(timed(module, inputs))
                own.append(timed(compiled, inputs))
        a, b = statistics.median(eager) * 1e3, statistics.median(own) * 1e3
        ratios.append(a / b)
        report = compiled.report
        print(f"| {name} | {a:.2f} | {b:.2f} | {a / b:.2f} | {seconds:.2f} | {report.programs} | {report.error:.1e} |", flush=True)
    if ratios:
        print(f"\ngeometric mean: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times eager's speed")


if __name__ == "__main__":
    main()
