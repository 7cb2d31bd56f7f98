"""Packed sequences of lengths that no input decides: packed, padded again, and recurrent layers over them as such layers
over the steps that as many sequences have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor

_GATES = ("lstm", "gru", "rnn_tanh", "rnn_relu")
FUNCTIONS = ("_pack_padded_sequence", "_pad_packed_sequence", *_GATES)


def is_packed(name: str, args: Sequence[Any]) -> bool:
    """Whether a function is one of packed sequences: of recurrent layers the form with sizes second."""
    return name not in _GATES or isinstance(args[3], (list, tuple))


def written(name: str, args: Sequence[Any], numbers: Callable[[Tensor], Optional[list[int]]]) -> Any:
    """What such a function gives, by operators of whole tensors. `numbers` reads a tensor, None where an input decides them.
    None where they are not known."""
    sizes = numbers(args[1])
    if sizes is None:
        return None
    if name == "_pack_padded_sequence":
        return _pack(args[0], sizes, *args[2:])
    if name == "_pad_packed_sequence":
        return _pad(args[0], sizes, *args[2:])
    return _recurrent(name, sizes, *args[:1], *args[2:])


def _pack(x: Tensor, lengths: list[int], batch_first: bool) -> tuple[Tensor, Tensor]:
    x = x.transpose(0, 1) if batch_first else x
    if sorted(lengths, reverse=True) != lengths or not lengths or lengths[-1] < 1 or len(lengths) != x.shape[1]:
        raise RuntimeError(f"lengths of packed sequences fall from the first on and are positive: found {lengths}")
    sizes = [sum(n > step for n in lengths) for step in range(lengths[0])]
    return torch.cat([x[step, :size] for step, size in enumerate(sizes)]), torch.tensor(sizes)


def _pad(data: Tensor, sizes: list[int], batch_first: bool, padding: Any, total: int = -1) -> tuple[Tensor, Tensor]:
    steps = max(total, len(sizes))
    rows, at = [], 0
    for step in range(steps):
        size = sizes[step] if step < len(sizes) else 0
        parts = [data[at : at + size]] if size else []
        if size < sizes[0]:
            parts.append(data.new_full((sizes[0] - size, *data.shape[1:]), float(padding)))
        rows.append(torch.cat(parts))
        at += size
    x = torch.stack(rows, 1 if batch_first else 0)
    return x, torch.tensor([sum(size > i for size in sizes) for i in range(sizes[0])])


def _runs(sizes: list[int]) -> list[tuple[int, int, int]]:
    """Steps that as many sequences have: where their rows begin, how many steps and how many sequences they are."""
    out: list[tuple[int, int, int]] = []
    at = 0
    for size in sizes:
        if out and out[-1][2] == size:
            out[-1] = (out[-1][0], out[-1][1] + 1, size)
        else:
            out.append((at, 1, size))
        at += size
    return out


def _recurrent(
    name: str, sizes: list[int], data: Tensor, state: Any, weights: Sequence[Tensor], has_biases: bool, layers: int,
    dropout: float, train: bool, bidirectional: bool,
) -> Any:  # fmt: skip
    states = list(state) if name == "lstm" else [state]
    directions = 2 if bidirectional else 1
    count = len(weights) // (layers * directions)
    last: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers):
        sides = []
        for side in range(directions):
            k = layer * directions + side
            own = weights[k * count : (k + 1) * count]
            made, end = _direction(name, sizes, data, [s[k : k + 1] for s in states], own, has_biases, side == 1)
            sides.append(made)
            for all_, one in zip(last, end):
                all_.append(one)
        data = torch.cat(sides, -1) if bidirectional else sides[0]
    return (data, *[torch.cat(all_) for all_ in last])


def _direction(
    name: str, sizes: list[int], data: Tensor, first: list[Tensor], weights: Sequence[Tensor], has_biases: bool, back: bool
) -> tuple[Tensor, list[Tensor]]:
    """One layer in one direction. Sequences end one after another, the last one of the batch first; backwards they begin."""
    layer = getattr(torch._VF, name)
    runs = _runs(sizes)
    held = [s[:, : runs[-1][2]] for s in first] if back else first
    ended: list[list[Tensor]] = [[] for _ in first]
    parts = []
    for at, steps, size in reversed(runs) if back else runs:
        now = held[0].shape[1]
        if now < size:
            held = [torch.cat([h, s[:, now:size]], 1) for h, s in zip(held, first)]
        elif now > size:
            for all_, h in zip(ended, held):
                all_.insert(0, h[:, size:])
            held = [h[:, :size] for h in held]
        x = data[at : at + steps * size].reshape(steps, size, data.shape[-1])
        x = x.flip(0) if back else x
        given = tuple(held) if name == "lstm" else held[0]
        made, *held = layer(x, given, weights, has_biases, 1, 0.0, False, False, False)
        made = made.flip(0) if back else made
        parts.append(made.reshape(steps * size, made.shape[-1]))
    whole = torch.cat(parts[::-1] if back else parts)
    return whole, [torch.cat([h, *all_], 1) for h, all_ in zip(held, ended)]
