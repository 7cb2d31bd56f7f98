"""Recurrent layers and cells."""

from __future__ import annotations

from typing import Any

from ... import ops
from ..types import HALVES
from .shape import joined, part
from .table import lowers

# Where PyTorch has each of kiln's gates: update and reset; input, output, forget, cell.
_GATES = {"plain": [0], "gru": [1, 0, 2], "lstm": [0, 3, 1, 2]}
_FUNCTIONS = {"gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}


def _wide(c: Any, x: Any) -> Any:
    return c.convert(x, "f32") if x.dtype in HALVES else x


def _in_order(c: Any, kind: str, x: Any, hidden: Any) -> Any:
    """A weight's or bias' gates along axis 0 in kiln's order."""
    gates = [ops.slice(x, axes=[0], starts=[g * hidden], ends=[(g + 1) * hidden]) for g in _GATES[kind]]
    return joined(gates, 0)


def stepped(
    c: Any, kind: Any, x: Any, weights: Any, biases: Any, state: Any, cell: Any, reverse: bool, functions: Any = None
) -> Any:
    """One direction of a layer over x[steps, batch, features]: its results, the last state and the last cell."""
    steps, batch, features = x.shape
    hidden = weights[1].shape[1]
    own, again = (_in_order(c, kind, _wide(c, w), hidden).transpose([1, 0]) for w in weights)
    gates = _wide(c, x).reshape([steps * batch, features]).dot(own)
    if biases:
        first, second = (_in_order(c, kind, _wide(c, b), hidden) for b in biases)
        gates = ops.add(gates, first)
    else:
        second = c.full([again.shape[1]], 0, gates.dtype)
    lengths = c.constant(1, "i64").broadcast_to([batch, steps]).reduce_sum([1]).squeeze([1])
    operands = [gates.reshape([steps, batch, again.shape[1]]), again, second, _wide(c, state), lengths]
    if kind == "lstm":
        operands += [_wide(c, cell), c.full([3 * hidden], 0, gates.dtype)]
    functions = _FUNCTIONS[kind] if functions is None else functions
    none = [0.0] * len(functions)
    y = ops.recurrent(*operands, cell=kind, functions=functions, alpha=none, beta=none, reverse=reverse,
                      linear_before_reset=True)  # fmt: skip
    made = [y, y.result(1), y.result(2) if kind == "lstm" else None]
    return [v if v is None else c.convert(v, x.dtype) for v in made]


def _layers(
    c: Any, kind: str, x: Any, states: Any, cells: Any, params: Any, has_biases: bool, count: int, bidirectional: bool,
    batch_first: bool, functions: Any = None,
) -> Any:  # fmt: skip
    x = x.transpose([1, 0, 2]) if batch_first else x
    each, directions = 4 if has_biases else 2, 2 if bidirectional else 1
    last, last_cells = [], []
    for layer in range(count):
        made = []
        for direction in range(directions):
            k = layer * directions + direction
            own = params[k * each : (k + 1) * each]
            cell = part(cells, 0, k) if cells is not None else None
            y, h, s = stepped(c, kind, x, own[:2], own[2:], part(states, 0, k), cell, direction == 1, functions)
            made.append(y)
            last.append(h.unsqueeze([0]))
            last_cells.append(s.unsqueeze([0]) if s is not None else None)
        x = joined(made, 2)
    y = x.transpose([1, 0, 2]) if batch_first else x
    return (y, joined(last, 0)) if cells is None else (y, joined(last, 0), joined(last_cells, 0))


def _refusal(params: Any, has_biases: bool, count: int, dropout: float, train: bool, bidirectional: bool) -> str | None:
    if train and dropout > 0:
        return "it is in training"
    expected = count * (4 if has_biases else 2) * (2 if bidirectional else 1)
    return "its states are projected" if len(params) != expected else None


@lowers("lstm.input", check=lambda x, hx, params, *how: _refusal(params, *how[:5]))
def lstm(
    c: Any, x: Any, hx: Any, params: Any, has_biases: bool, count: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    return _layers(c, "lstm", x, hx[0], hx[1], params, has_biases, count, bidirectional, batch_first)


def _recurrent(name: str, kind: str, functions: Any) -> None:
    @lowers(f"{name}.input", check=lambda x, hx, params, *how: _refusal(params, *how[:5]))
    def layers(
        c: Any, x: Any, hx: Any, params: Any, has_biases: bool, count: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        return _layers(c, kind, x, hx, None, params, has_biases, count, bidirectional, batch_first, functions)

    @lowers(f"{name}_cell")
    def cell(c: Any, x: Any, hx: Any, w: Any, again: Any, bias: Any = None, second: Any = None) -> Any:
        alone = len(x.shape) == 1
        if alone:
            x, hx = x.unsqueeze([0]), hx.unsqueeze([0])
        biases = [] if bias is None else [bias, second]
        h = stepped(c, kind, x.unsqueeze([0]), [w, again], biases, hx, None, False, functions)[1]
        return h.squeeze([0]) if alone else h


_recurrent("gru", "gru", None)
_recurrent("rnn_tanh", "plain", ["tanh"])
_recurrent("rnn_relu", "plain", ["relu"])


@lowers("lstm_cell")
def lstm_cell(c: Any, x: Any, hx: Any, w: Any, again: Any, bias: Any = None, second: Any = None) -> Any:
    biases = [] if bias is None else [bias, second]
    return tuple(stepped(c, "lstm", x.unsqueeze([0]), [w, again], biases, hx[0], hx[1], False)[1:])
