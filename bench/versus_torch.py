#!/usr/bin/env python3
"""Times the cases of bench/device.cpp in PyTorch, compiled and replayed as a CUDA graph: name and milliseconds."""
import statistics
import sys

import torch
import torch.nn.functional as F


def tensor(*size):
    return torch.rand(*size, device="cuda", dtype=torch.float16) * 2 - 1


def cases():
    big = lambda: tensor(16384, 16384)
    rows = lambda: tensor(65536, 4096)
    row = lambda: tensor(4096)
    square = lambda: tensor(4096, 4096)
    yield "copy_256m", lambda x: x + 1, [big()]
    yield "chain_256m", lambda x, y: torch.relu(x * y + x) * torch.sigmoid(x), [big(), big()]
    yield "softmax", lambda x: torch.softmax(x, -1), [rows()]
    yield "layer_norm", lambda x, s, b: F.layer_norm(x, (4096,), s, b), [rows(), row(), row()]
    yield "bias_gelu_residual", lambda x, b, r: F.gelu(x + b) + r, [rows(), row(), rows()]
    yield "transpose", lambda x: x.t().contiguous(), [big()]
    yield "reduce_columns", lambda x: x.sum(0), [rows()]
    yield "reduce_all", lambda x: x.sum(), [rows()]
    heads = lambda: tensor(16, 12, 512, 64)
    causal = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    shared = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    yield "attention_512", F.scaled_dot_product_attention, [heads(), heads(), heads()]
    yield "attention_512_causal", causal, [heads(), heads(), heads()]
    many = lambda: tensor(2, 16, 4096, 64)
    yield "attention_4096", F.scaled_dot_product_attention, [many(), many(), many()]
    yield "attention_4096_causal", causal, [many(), many(), many()]
    cache = lambda: tensor(4, 8, 8192, 128)
    yield "attention_decode", shared, [tensor(4, 32, 1, 128), cache(), cache()]
    last = torch.channels_last
    for name, batch, channels, size, stride in [("112", 16, 96, 112, 2), ("56", 16, 144, 56, 1), ("14", 16, 576, 14, 1),
                                                ("one", 1, 144, 56, 1)]:
        conv = torch.nn.Conv2d(channels, channels, 3, stride, 1, groups=channels).half().cuda()
        yield f"depthwise_{name}", lambda x, c=conv: torch.relu(c(x)), [
            tensor(batch, channels, size, size).to(memory_format=last)]
    back = torch.nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False).half().cuda()
    yield "deconvolution_64", back, [tensor(16, 128, 64, 64)]
    yield "deconvolution_64_last", back.to(memory_format=last), [tensor(16, 128, 64, 64).to(memory_format=last)]
    lstm = torch.nn.LSTM(512, 512).half().cuda()
    yield "lstm_512", lambda x: lstm(x)[0], [tensor(128, 8, 512)]
    from torchvision.models import resnet50
    for batch in 1, 64:
        net = resnet50().half().cuda().eval()
        image = tensor(batch, 3, 224, 224)
        yield f"resnet50_{batch}", net, [image]
        yield f"resnet50_{batch}_last", net.to(memory_format=last), [image.to(memory_format=last)]
    from transformers import BertConfig, BertModel
    bert = BertModel(BertConfig(), add_pooling_layer=False).half().cuda().eval()
    for batch, tokens in (1, 128), (32, 512):
        yield f"bert_base_{batch}", lambda ids: bert(ids)[0], [torch.randint(0, 30000, (batch, tokens), device="cuda")]
    long = lambda: tensor(4, 32, 2048, 128)
    yield "attention_long", F.scaled_dot_product_attention, [long(), long(), long()]
    yield "attention_causal", causal, [long(), long(), long()]
    for name, rows, width, to in [("dense_up", 16384, 768, 3072), ("dense_down", 16384, 3072, 768),
                                  ("decode_1", 1, 4096, 14336), ("decode_16", 16, 4096, 14336)]:
        f = (lambda x, w, b: F.gelu(x @ w + b)) if name == "dense_up" else lambda x, w, b: x @ w + b
        yield name, f, [tensor(rows, width), tensor(width, to), tensor(to)]
    yield "gemm_4096", lambda x, w, b: F.gelu(x @ w + b), [square(), square(), row()]


def time_case(f, args):
    compiled = torch.compile(f)
    with torch.no_grad():
        for _ in range(3):
            compiled(*args)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            compiled(*args)
        times = []
        for _ in range(9):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(10):
                graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 10)
    return statistics.median(times)


for name, f, args in cases():
    if len(sys.argv) == 1 or any(name.startswith(a) for a in sys.argv[1:]):
        print(f"torch {name:<20} {time_case(f, args):9.4f} ms", flush=True)
    del args
