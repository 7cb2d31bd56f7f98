"""Blocks of language, speech and image models as their libraries write them: one program each, for any batch."""

import math
import sys
import unittest

try:
    import torch
except ImportError as why:
    print(f"SKIPPED: {why}: nothing of PyTorch's is tested", file=sys.stderr)
    sys.exit(77)

import torch.nn.functional as F
from kiln import torch as kiln_torch
from torch import nn


def split_heads(x, heads):
    return x.view(x.size()[:-1] + (heads, x.shape[-1] // heads)).permute(0, 2, 1, 3)


def joined_heads(x):
    x = x.permute(0, 2, 1, 3).contiguous()
    return x.view(x.size()[:-2] + (-1,))


def hidden_where(mask, dtype):
    return (1.0 - mask[:, None, None, :].to(dtype)) * torch.finfo(dtype).min


class Decoder(nn.Module):
    """With learned positions, a causal buffer of bytes, and gelu by tanh."""

    def __init__(self, width=32, heads=4, words=50):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.first, self.second, self.last = (nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("seen", torch.tril(torch.ones(64, 64, dtype=torch.uint8)).view(1, 1, 64, 64))

    def forward(self, ids, mask=None):
        steps = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(0, steps).unsqueeze(0).view(-1, steps))
        q, k, v = (split_heads(z, self.heads) for z in self.qkv(self.first(x)).split(x.shape[-1], dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / torch.full([], v.size(-1) ** 0.5)
        least = torch.full([], torch.finfo(scores.dtype).min)
        scores = torch.where(self.seen[:, :, :steps, :steps].to(torch.bool), scores, least)
        if mask is not None:
            scores = scores + hidden_where(mask, x.dtype)
        x = x + self.out(joined_heads(torch.matmul(F.softmax(scores, dim=-1).type(v.dtype), v)))
        y = self.up(self.second(x))
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        return self.last(x + self.down(y)) @ self.words.weight.t()


class Encoder(nn.Module):
    """With types of tokens, places that count what is no padding, and a dictionary of results."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(50, width, padding_idx=1), nn.Embedding(64, width, padding_idx=1)
        self.types, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        self.q, self.k, self.v, self.out, self.pool = (nn.Linear(width, width) for _ in range(5))

    def forward(self, ids, mask):
        counted = ids.ne(1).int()
        places = (torch.cumsum(counted, dim=1).type_as(counted) * counted).long() + 1
        x = self.words(ids) + self.types(torch.zeros_like(ids)) + self.places(places)
        x = F.dropout(self.norm(x), 0.1, self.training)
        q, k, v = (split_heads(f(x), self.heads) for f in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) + hidden_where(mask, x.dtype)
        x = x + self.out(joined_heads(torch.matmul(F.softmax(scores, -1), v)))
        return {"last": x, "pooled": torch.tanh(self.pool(x[:, 0]))}


class Rotary(nn.Module):
    """With rotated positions, fewer heads of keys, RMS norms and a gated layer."""

    def __init__(self, width=32, heads=4, key_heads=2):
        super().__init__()
        self.heads, self.key_heads, self.depth = heads, key_heads, width // heads
        self.words, self.scale = nn.Embedding(50, width), nn.Parameter(torch.rand(width))
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, key_heads * self.depth, bias=False) for _ in range(2))
        self.gate, self.up, self.down = nn.Linear(width, 64), nn.Linear(width, 64), nn.Linear(64, width)
        self.register_buffer("inverse", 1.0 / (10000 ** (torch.arange(0, self.depth, 2).float() / self.depth)))

    def norm(self, x):
        wide = x.to(torch.float32)
        return self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    def forward(self, ids):
        batch, steps = ids.shape
        x = self.words(ids)
        y = self.norm(x)
        angles = (self.inverse[None, :, None] @ torch.arange(steps)[None, None, :].float()).transpose(1, 2)
        angles = torch.cat((angles, angles), -1)[:, None]
        q = self.q(y).view(batch, steps, self.heads, self.depth).transpose(1, 2)
        k, v = (f(y).view(batch, steps, self.key_heads, self.depth).transpose(1, 2) for f in (self.k, self.v))
        q, k = (z * angles.cos() + self.turned(z) * angles.sin() for z in (q, k))
        k, v = (self.repeated(z) for z in (k, v))
        mask = torch.full((steps, steps), torch.finfo(x.dtype).min)
        at = torch.arange(steps)
        mask.masked_fill_(at < (at + 1).view(steps, 1), 0)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.depth) + mask[None, None].expand(batch, 1, steps, steps)
        share = F.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
        x = x + self.out(torch.matmul(share, v).transpose(1, 2).contiguous().reshape(batch, steps, -1))
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def turned(self, x):
        half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), -1)

    def repeated(self, x):
        batch, heads, steps, depth = x.shape
        times = self.heads // self.key_heads
        return x[:, :, None].expand(batch, heads, times, steps, depth).reshape(batch, self.heads, steps, depth)


class Relative(nn.Module):
    """With a bias for the bucket of each distance."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.words, self.bias = heads, nn.Embedding(50, width), nn.Embedding(32, heads)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def bucket(self, distance, buckets=16, most=128):
        side, distance = (distance > 0).to(torch.long) * buckets, torch.abs(distance)
        exact = buckets // 2
        far = exact + (torch.log(distance.float() / exact) / math.log(most / exact) * (buckets - exact)).to(torch.long)
        far = torch.min(far, torch.full_like(far, buckets - 1))
        return side + torch.where(distance < exact, distance, far)

    def forward(self, ids):
        at = torch.arange(ids.shape[1])
        x = self.words(ids)
        q, k, v = (split_heads(f(x), self.heads) for f in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(3, 2)) + self.bias(self.bucket(at[None] - at[:, None])).permute([2, 0, 1])[None]
        return x + self.out(joined_heads(torch.matmul(F.softmax(scores.float(), dim=-1).type_as(scores), v)))


class Speech(nn.Module):
    """Convolutions of a wave, a gated one by channel, and a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.wave, self.wide = nn.Conv1d(1, 16, 10, stride=5), nn.Conv1d(16, 32, 31, padding=15, groups=16)
        self.norm, self.layer = nn.BatchNorm1d(16), nn.GRU(16, 8, bidirectional=True, batch_first=True)

    def forward(self, x):
        y = F.gelu(self.wave(x[:, None]))
        return self.layer(self.norm(F.glu(self.wide(y), dim=1)).transpose(1, 2))[0]


class Denoiser(nn.Module):
    """Convolutions down and up with group norms, and an embedded time."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8)
        self.down, self.up = nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ConvTranspose2d(16, 8, 2, 2)
        self.time = nn.Linear(8, 16)

    def forward(self, x, t):
        angles = t[:, None].float() * torch.exp(-math.log(10000) * torch.arange(4) / 4)[None]
        y = F.silu(self.norm(self.first(x)))
        z = self.down(y) + self.time(F.silu(torch.cat([angles.sin(), angles.cos()], -1)))[:, :, None, None]
        z = F.interpolate(z, scale_factor=2.0, mode="nearest")
        return torch.cat([y, self.up(F.avg_pool2d(z, 2))], 1)


IDS = torch.tensor([[5, 9, 33, 2, 7, 14, 21], [8, 3, 45, 6, 30, 1, 1]])
MASK = IDS.ne(1).long()


class BlockTest(unittest.TestCase):
    def agrees(self, make, args, attention=0):
        """The module gives what it gives eagerly, as one program without and with a symbol for the batch, whose steps
        hold so many attentions."""
        torch.manual_seed(0)
        module = make().eval()
        for dynamic in (False, True):
            made = kiln_torch.compile(module, args, dynamic_batch=dynamic)
            given = tuple(torch.cat([x, x.flip(0), x]) for x in args) if dynamic else args
            with torch.no_grad():
                wanted, found = module(*given), made(*given)
            self.assertEqual(len(made.reports), 1, made.report)
            self.assertEqual([p.by for p in made.report.parts], ["kiln"], made.report)
            flat = torch.utils._pytree.tree_flatten
            self.assertEqual(flat(found)[1], flat(wanted)[1])
            for f, w in zip(flat(found)[0], flat(wanted)[0]):
                self.assertLess(float((f - w).abs().max() / w.abs().max()), 1e-5)
            (part,) = next(iter(made._variants.values())).steps.steps
            self.assertEqual(sum(s["kernel"].startswith("attention") for s in part.exe.report["steps"]), attention)

    def test_decoder(self):
        self.agrees(Decoder, (IDS,), attention=1)
        self.agrees(Decoder, (IDS, MASK), attention=1)

    def test_encoder(self):
        self.agrees(Encoder, (IDS, MASK), attention=1)

    def test_rotary(self):
        self.agrees(Rotary, (IDS,), attention=1)

    def test_relative(self):
        self.agrees(Relative, (IDS,), attention=1)

    def test_speech(self):
        self.agrees(Speech, (torch.rand(2, 200),))

    def test_denoiser(self):
        self.agrees(Denoiser, (torch.rand(2, 3, 16, 16), torch.tensor([3, 500])))


if __name__ == "__main__":
    unittest.main()
