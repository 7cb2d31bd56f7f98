#!/usr/bin/env python3
"""Writes a Llama with random weights as a GGUF file, TinyLlama-1.1B's shape unless told, with Q4_0, F16 or BF16 matrices.

    make_gguf.py OUT.gguf [--type q4_0] [--layers 22] [--hidden 2048] [--heads 32] [--kv-heads 4] [--ffn 5632] [--vocabulary 32000]

Format: GGUF v3 (the GGML project's specification). A block of Q4_0 is an f16 scale and 16 bytes; byte j holds number j
and, in its upper half, number j + 16; a weight is scale * (number - 8).
"""
import argparse
import struct

import numpy as np

ALIGNMENT = 32
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "bf16": 30}
U32, I32, F32, STRING, ARRAY = 4, 5, 6, 8, 9


def text(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, v):
    return text(v) if kind == STRING else struct.pack({U32: "<I", I32: "<i", F32: "<f"}[kind], v)


def entry(key, kind, v):
    """A metadata entry; a list is an array of the kind."""
    if isinstance(v, list):
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(v)) + b"".join(scalar(kind, x) for x in v)
    return text(key) + struct.pack("<I", kind) + scalar(kind, v)


def metadata(a):
    """Of a Llama whose SentencePiece vocabulary has the bytes and words that mean nothing."""
    name = "general.architecture", STRING, "llama"
    sizes = {"context_length": 2048, "embedding_length": a.hidden, "block_count": a.layers, "feed_forward_length": a.ffn, "attention.head_count": a.heads,
             "attention.head_count_kv": a.kv_heads, "rope.dimension_count": a.hidden // a.heads, "vocab_size": a.vocabulary}
    reals = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10000.0}
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    tokens += [f"w{i}" for i in range(len(tokens), a.vocabulary)]
    kinds = ([2, 3, 3] + [6] * 256 + [1] * a.vocabulary)[:a.vocabulary]  # unknown, control, bytes, words
    tokenizer = [("model", STRING, "llama"), ("tokens", STRING, tokens[:a.vocabulary]), ("scores", F32, [-float(i) for i in range(a.vocabulary)]),
                 ("token_type", I32, kinds), ("bos_token_id", U32, 1), ("eos_token_id", U32, 2), ("unknown_token_id", U32, 0)]
    return ([name, ("general.name", STRING, "random"), ("general.alignment", U32, ALIGNMENT)] + [("llama." + k, U32, v) for k, v in sizes.items()] +
            [("llama." + k, F32, v) for k, v in reals.items()] + [("tokenizer.ggml." + k, kind, v) for k, kind, v in tokenizer])


def tensors(a):
    """Name, rows and columns; a vector has no rows."""
    kv = a.hidden // a.heads * a.kv_heads
    yield "token_embd", a.vocabulary, a.hidden
    for i in range(a.layers):
        for name, rows, columns in (("attn_norm", 0, a.hidden), ("attn_q", a.hidden, a.hidden), ("attn_k", kv, a.hidden), ("attn_v", kv, a.hidden),
                                    ("attn_output", a.hidden, a.hidden), ("ffn_norm", 0, a.hidden), ("ffn_gate", a.ffn, a.hidden),
                                    ("ffn_up", a.ffn, a.hidden), ("ffn_down", a.hidden, a.ffn)):
            yield f"blk.{i}.{name}", rows, columns
    yield "output_norm", 0, a.hidden
    yield "output", a.vocabulary, a.hidden


def stored_bytes(kind, n):
    return n // 32 * 18 if kind == "q4_0" else n * (4 if kind == "f32" else 2)


def matrix(kind, rows, columns, random):
    """The bytes of weights whose products keep the variance of what they multiply."""
    if kind != "q4_0":
        w = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(columns ** 0.5)
        return w.astype("<f2").tobytes() if kind == "f16" else (w.view("<u4") >> 16).astype("<u2").tobytes()
    blocks = np.empty((rows, columns // 32, 18), np.uint8)
    scales = random.uniform(0.5, 1.5, blocks.shape[:2]) / (4.5 * columns ** 0.5)
    blocks[..., :2] = scales.astype("<f2")[..., None].view(np.uint8)
    blocks[..., 2:] = random.integers(0x11, 0x100, blocks.shape[:2] + (16,), dtype=np.uint8)
    return blocks.tobytes()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--type", choices=["q4_0", "f16", "bf16"], default="q4_0")
    for name, n in dict(layers=22, hidden=2048, heads=32, kv_heads=4, ffn=5632, vocabulary=32000).items():
        p.add_argument("--" + name.replace("_", "-"), type=int, default=n)
    a = p.parse_args()

    head, infos, at, count = [entry(*m) for m in metadata(a)], [], 0, 0
    for name, rows, columns in tensors(a):
        kind, lens = (a.type, [columns, rows]) if rows else ("f32", [columns])
        infos.append(text(name + ".weight") + struct.pack(f"<I{len(lens)}QIQ", len(lens), *lens, TYPES[kind], at))
        at += -(-stored_bytes(kind, columns * max(rows, 1)) // ALIGNMENT) * ALIGNMENT
        count += 1
    random = np.random.default_rng(1)
    with open(a.out, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, count, len(head)) + b"".join(head) + b"".join(infos))
        for _, rows, columns in tensors(a):
            f.write(bytes(-f.tell() % ALIGNMENT))
            f.write(matrix(a.type, rows, columns, random) if rows else np.ones(columns, "<f4").tobytes())


if __name__ == "__main__":
    main()
