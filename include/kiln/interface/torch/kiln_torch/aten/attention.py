"""Attention, and the layers of transformers that PyTorch has as one operator."""

from __future__ import annotations

import math
from typing import Any

import torch

from ... import ops
from .activation import relu
from .linear import linear, matmul
from .normalize import layer_normalized
from .shape import broadcast_lens
from .table import lowers


def _of_rank_4(x: Any) -> Any:
    rank = len(x.shape)
    if rank > 4:
        return x.reshape([math.prod(x.shape[: rank - 3]), *x.shape[rank - 3 :]])
    return x.unsqueeze(list(range(4 - rank))) if rank < 4 else x


def _visible(c: Any, rows: Any, columns: Any) -> Any:
    """Which keys a causal query sees: those up to its own index."""
    return c.constant(torch.ones(rows, columns, dtype=torch.bool).tril())


def attended(c: Any, q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: Any, grouped: bool = False) -> Any:
    """softmax(scale q k^T + mask) v of [..., length, depth]; a mask is summed or, of bools, true where keys are seen."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    if q.dtype == "f64":  # the op's attribute has single precision
        q, scale = c.scaled(q, scale), 1.0
    rank = max(len(x.shape) for x in (q, k, v))
    lead = broadcast_lens(*(x.shape[:-2] for x in (q, k, v))) if not grouped else None
    if lead is not None:
        q, k, v = (x if list(x.shape[:-2]) == lead else x.broadcast_to(lead + x.shape[-2:]) for x in (q, k, v))
    made = [*q.shape[:-1], v.shape[-1]]
    if mask is not None:
        mask = mask if mask.dtype == "bool" else c.convert(mask, q.dtype)
        if len(mask.shape) > 4 or rank > 4:
            mask = mask.broadcast_to([*q.shape[:-1], k.shape[-2]])
        mask = _of_rank_4(mask)
    if causal and q.shape[-2] != k.shape[-2]:  # the op's own aligns the last query with the last key
        seen, causal = _of_rank_4(_visible(c, q.shape[-2], k.shape[-2])), False
        if mask is None:
            mask = seen
        elif mask.dtype == "bool":
            mask = ops.logical_and(mask, seen)
        else:
            mask = ops.where(seen, mask, c.constant(-math.inf, mask.dtype))
    operands = [_of_rank_4(x) for x in (q, k, v)] + ([] if mask is None else [mask])
    return ops.attention(*operands, scale=scale, causal=causal).reshape(made)


def _weights(c: Any, q: Any, k: Any, mask: Any, causal: bool, scale: Any) -> Any:
    rank = len(k.shape)
    scores = matmul(c, q, k.transpose([*range(rank - 2), rank - 1, rank - 2]))
    scores = c.scaled(scores, 1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        seen = _visible(c, q.shape[-2], k.shape[-2])
        scores = ops.where(seen, scores, c.constant(-math.inf, scores.dtype))
    if mask is not None and mask.dtype == "bool":
        scores = ops.where(mask, scores, c.constant(-math.inf, scores.dtype))
    elif mask is not None:
        scores = ops.add(scores, c.convert(mask, scores.dtype))
    return scores.softmax(len(scores.shape) - 1)


def _drops(q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0, *how: Any, **named: Any) -> str | None:
    return "it drops weights, as in training" if dropout else None


@lowers("scaled_dot_product_attention", check=_drops)
def scaled_dot_product_attention(
    c: Any, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0, causal: bool = False, *,
    scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    return attended(c, q, k, v, mask, causal, scale, enable_gqa)


@lowers("_scaled_dot_product_attention", check=_drops)
def attention_and_weights(
    c: Any, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0, weights: bool = False, causal: bool = False
) -> Any:
    if not weights or not c.reads(1):
        return attended(c, q, k, v, mask, causal, None), None
    share = _weights(c, q, k, mask, causal, None)
    return matmul(c, share, v), share


@lowers("_scaled_dot_product_attention_math", makes=1,
        check=lambda q, k, v, mask=None, dropout=0, *how, **named: _drops(q, k, v, mask, dropout))  # fmt: skip
def attention_by_products(
    c: Any, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0, causal: bool = False, *how: Any,
    scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    # before PyTorch 2 the flag after dropout asked for the weights
    causal = how[0] if len(how) == 1 and isinstance(how[0], bool) else causal
    return attended(c, q, k, v, mask, causal, scale, enable_gqa), None


@lowers("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu", makes=1,
        check=lambda q, k, v, dropout=0, *how, **named: _drops(q, k, v, None, dropout))  # fmt: skip
def flash_attention(
    c: Any, q: Any, k: Any, v: Any, dropout: float = 0, causal: bool = False, *how: Any, attn_mask: Any = None,
    scale: Any = None,
) -> Any:  # fmt: skip
    return (attended(c, q, k, v, attn_mask, causal, scale), *[None] * 8)


@lowers("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", makes=1,
        check=lambda q, k, v, bias, lse, dropout=0, *how, **named: _drops(q, k, v, bias, dropout))  # fmt: skip
def efficient_attention(
    c: Any, q: Any, k: Any, v: Any, bias: Any, lse: bool, dropout: float = 0, causal: bool = False, *how: Any,
    scale: Any = None,
) -> Any:  # fmt: skip
    return (attended(c, q, k, v, bias, causal, scale), *[None] * 8)


def _heads(x: Any, heads: int) -> Any:
    """[batch, length, width] as [batch, heads, length, width / heads]."""
    batch, length, width = x.shape
    return x.reshape([batch, length, heads, width // heads]).transpose([0, 2, 1, 3])


def _seen(c: Any, mask: Any, kind: int | None) -> Any:
    """A mask that is true where keys are hidden as one for [batch, heads, queries, keys]."""
    if mask is None:
        return None
    if kind == 1:  # of keys
        mask = mask.unsqueeze([1, 2])
    return ops.logical_not(c.convert(mask, "bool")) if mask.dtype in ("bool", "u8") else mask


def _multi_head(
    c: Any, q: Any, k: Any, v: Any, heads: int, weight: Any, bias: Any, out: Any, out_bias: Any, mask: Any,
    wants_weights: bool, average: bool,
) -> tuple[Any, Any]:  # fmt: skip
    width = q.shape[-1]
    if q is k and q is v:
        all_three = linear(c, q, weight, bias)
        parts = [
            ops.slice(all_three, axes=[2], starts=[i * width], ends=[(i + 1) * width]) for i in range(3)
        ]
    else:
        parts = []
        for i, x in enumerate((q, k, v)):
            own = ops.slice(weight, axes=[0], starts=[i * width], ends=[(i + 1) * width])
            shift = ops.slice(bias, axes=[0], starts=[i * width], ends=[(i + 1) * width])
            parts.append(linear(c, x, own, shift))
    split = [_heads(p, heads) for p in parts]
    if wants_weights:
        share = _weights(c, split[0], split[1], mask, False, None)
        made = matmul(c, share, split[2])
        share = ops.reduce_mean(share, axes=[1]).squeeze([1]) if average else share
    else:
        share, made = None, attended(c, split[0], split[1], split[2], mask, False, None)
    joined = made.transpose([0, 2, 1, 3]).reshape([*q.shape[:2], width])
    return linear(c, joined, out, out_bias), share


@lowers("_native_multi_head_attention")
def native_multi_head_attention(
    c: Any, q: Any, k: Any, v: Any, width: int, heads: int, weight: Any, bias: Any, out: Any, out_bias: Any,
    mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: int | None = None,
) -> Any:  # fmt: skip
    wanted = need_weights and c.reads(1)
    return _multi_head(c, q, k, v, heads, weight, bias, out, out_bias, _seen(c, mask, mask_type), wanted, average)


@lowers("_transformer_encoder_layer_fwd")
def encoder_layer(
    c: Any, x: Any, width: int, heads: int, weight: Any, bias: Any, out: Any, out_bias: Any, use_gelu: bool,
    norm_first: bool, epsilon: float, scale_1: Any, shift_1: Any, scale_2: Any, shift_2: Any, first: Any,
    first_bias: Any, second: Any, second_bias: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    seen = _seen(c, mask, mask_type)

    def normalized(y: Any, scale: Any, shift: Any) -> Any:
        return layer_normalized(c, y, [width], scale, shift, epsilon)

    def attention(y: Any) -> Any:
        return _multi_head(c, y, y, y, heads, weight, bias, out, out_bias, seen, False, False)[0]

    def feed_forward(y: Any) -> Any:
        inner = linear(c, y, first, first_bias)
        return linear(c, ops.gelu(inner) if use_gelu else relu(c, inner), second, second_bias)

    if norm_first:
        x = ops.add(x, attention(normalized(x, scale_1, shift_1)))
        return ops.add(x, feed_forward(normalized(x, scale_2, shift_2)))
    x = normalized(ops.add(x, attention(x)), scale_1, shift_1)
    return normalized(ops.add(x, feed_forward(x)), scale_2, shift_2)


@lowers("_transform_bias_rescale_qkv")
def biased_heads(c: Any, x: Any, bias: Any, heads: int) -> Any:
    width = x.shape[-1] // 3
    y = ops.add(x, bias)
    q, k, v = (_heads(ops.slice(y, axes=[2], starts=[i * width], ends=[(i + 1) * width]), heads) for i in range(3))
    return c.scaled(q, 1 / math.sqrt(width // heads)), k, v


@lowers("_masked_softmax")
def masked_softmax(c: Any, x: Any, mask: Any, dim: int | None = None, mask_type: int | None = None) -> Any:
    seen = _seen(c, mask, mask_type) if len(mask.shape) != len(x.shape) else ops.logical_not(c.convert(mask, "bool"))
    axis = len(x.shape) - 1 if dim is None else dim % len(x.shape)
    return ops.where(seen, x, c.constant(-math.inf, x.dtype)).softmax(axis)
