"""Operators of PyTorch's that are written as several: the fused forms that its modules take for inference."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch import Tensor


def _heads(x: Tensor, heads: int) -> Tensor:
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)


def _masked(scores: Tensor, mask: Optional[Tensor], kind: Optional[int]) -> Tensor:
    """Scores [batch, heads, target, source] without what the mask excludes. Kind 0: a mask [target, source] or of all
    scores; 1: padding [batch, source]."""
    if mask is None:
        return scores
    if kind == 1 or (kind is None and mask.dim() == 2 and mask.shape == (scores.shape[0], scores.shape[3])
                     and mask.shape != tuple(scores.shape[2:])):
        mask = mask.view(mask.shape[0], 1, 1, mask.shape[1])
    elif mask.dim() == 3:
        mask = mask.view(scores.shape)
    return scores.masked_fill(mask, -math.inf) if mask.dtype == torch.bool else scores + mask


def _attention(
    query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor, mask: Optional[Tensor],
    kind: Optional[int],
) -> tuple[Tensor, Tensor]:
    """What the heads give side by side, and their weights [batch, heads, target, source]."""
    if query is key and key is value:
        q, k, v = torch.nn.functional.linear(query, weight, bias).chunk(3, -1)
    else:
        q, k, v = (
            torch.nn.functional.linear(x, w, b)
            for x, w, b in zip((query, key, value), weight.chunk(3), bias.chunk(3))
        )
    q, k, v = (_heads(x, heads) for x in (q, k, v))
    scores = torch.matmul(q * (1 / math.sqrt(width // heads)), k.transpose(-2, -1))
    weights = _masked(scores, mask, kind).softmax(-1)
    out = torch.matmul(weights, v).transpose(1, 2)
    return out.reshape(out.shape[0], out.shape[1], width), weights


def _native_multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Optional[Tensor] = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: Optional[int] = None,
) -> tuple[Tensor, Optional[Tensor]]:
    out, weights = _attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, mask, mask_type)
    out = torch.nn.functional.linear(out, proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


def _transformer_encoder_layer_fwd(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
    proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor,
    norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
    ffn_bias_2: Tensor, mask: Optional[Tensor] = None, mask_type: Optional[int] = None,
) -> Tensor:
    linear, norm = torch.nn.functional.linear, torch.nn.functional.layer_norm

    def attend(x: Tensor) -> Tensor:
        out, _ = _attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, mask, mask_type)
        return linear(out, proj_weight, proj_bias)

    def feed(x: Tensor) -> Tensor:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        hidden = torch.nn.functional.gelu(hidden) if use_gelu else hidden.relu()
        return linear(hidden, ffn_weight_2, ffn_bias_2)

    first, second = (norm_weight_1, norm_bias_1, eps), (norm_weight_2, norm_bias_2, eps)
    if norm_first:
        src = src + attend(norm(src, (embed_dim,), *first))
        return src + feed(norm(src, (embed_dim,), *second))
    src = norm(src + attend(src), (embed_dim,), *first)
    return norm(src + feed(src), (embed_dim,), *second)


decompositions: dict[Any, Any] = {
    getattr(torch.ops.aten, f.__name__).default: f
    for f in (_native_multi_head_attention, _transformer_encoder_layer_fwd)
    if hasattr(torch.ops.aten, f.__name__)
}
