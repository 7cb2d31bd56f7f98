"""One graph for any batch: from the graphs of runs with several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from .. import _kiln
from .record import VIEWS
from .trace import Trace


class Extent(NamedTuple):
    """A number that depends on the batch n: slope * n + offset."""

    slope: int
    offset: int

    def __repr__(self) -> str:
        return f"({self.slope} * n + {self.offset})"

    def at(self, n: int) -> int:
        """The number for a batch."""
        return self.slope * n + self.offset

    def over(self, n: Any) -> Any:
        """The number for a batch that is a symbol."""
        scaled = n if self.slope == 1 else n * self.slope
        return scaled + self.offset if self.offset else scaled


class NotOneGraph(Exception):
    """Why runs with several batches are no graph with a symbol."""


def map_numbers(args: Any, f: Callable[[Extent], Any]) -> Any:
    """Arguments of a node with f of each Extent."""
    if isinstance(args, Extent):
        return f(args)
    if isinstance(args, dict):
        return {k: map_numbers(v, f) for k, v in args.items()}
    if isinstance(args, (list, tuple)):
        return type(args)(map_numbers(x, f) for x in args)
    return args


def _number(values: Sequence[int], sizes: Sequence[int], where: str) -> Any:
    if len(set(values)) == 1:
        return values[0]
    slope, rest = divmod(values[1] - values[0], sizes[1] - sizes[0])
    made = Extent(slope, values[0] - slope * sizes[0])
    if rest or slope < 0 or any(made.at(n) != v for n, v in zip(sizes, values)):
        raise NotOneGraph(f"{where} is {', '.join(map(str, values))} for the batches {', '.join(map(str, sizes))}")
    return made


def _unify(xs: Sequence[Any], sizes: Sequence[int], twin: Callable[[Sequence[Node]], Node], where: str) -> Any:
    first = xs[0]
    if any(type(x) is not type(first) for x in xs):
        raise NotOneGraph(f"{where} is of different types")
    if isinstance(first, Node):
        return twin(xs)
    if isinstance(first, dict):
        return {k: _unify([x[k] for x in xs], sizes, twin, where) for k in first}
    if isinstance(first, (list, tuple)):
        if len({len(x) for x in xs}) != 1:
            raise NotOneGraph(f"{where} has different lengths")
        return type(first)(_unify(part, sizes, twin, where) for part in zip(*xs))
    if type(first) is int:
        return _number(xs, sizes, where)
    if any(x != first for x in xs):
        raise NotOneGraph(f"{where} is {', '.join(map(str, xs))}")
    return first


def _extents_of(nodes: Sequence[Node], sizes: Sequence[int]) -> Any:
    values = [n.meta.get("val") for n in nodes]
    if not isinstance(values[0], torch.Tensor):
        return None
    if len({x.dim() for x in values}) != 1:
        raise NotOneGraph(f"{nodes[0].name} has different numbers of dims")
    return tuple(_number(part, sizes, f"an extent of {nodes[0].name}") for part in zip(*(x.shape for x in values)))


_CUTS = {"split", "unsafe_split", "chunk", "unsafe_chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit"}


def _check_cut(node: Node) -> None:
    """Raises NotOneGraph where a node cuts an extent that grows with the batch: how many parts it gives may grow, too."""
    name = "" if not hasattr(node.target, "_schema") else node.target._schema.name.split("::")[1]
    if name not in _CUTS:
        return
    given = {a.name: node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
             for i, a in enumerate(node.target._schema.arguments)}  # type: ignore[union-attr]
    extents = node.args[0].meta["extents"]  # type: ignore[union-attr]
    extent = extents[given.get("dim", {"vsplit": 0, "dsplit": 2}.get(name, 1))]
    if not isinstance(extent, Extent):
        return
    size: Any = given.get("split_size")
    if isinstance(size, Extent) and any(extent == (k * size.slope, k * size.offset) for k in range(1, extent.slope + 1)):
        return
    raise NotOneGraph(f"{node.name} cuts what grows with the batch")


def unify(traces: Sequence[Trace], sizes: Sequence[int]) -> Trace:
    """The graph of runs with batches of these sizes, its numbers Extents where they differ; raises NotOneGraph."""
    first = traces[0]
    if any(t[1:7] != first[1:7] for t in traces):
        raise NotOneGraph("the runs have different inputs and outputs")
    lists = [list(t.graph.graph.nodes) for t in traces]
    if len({len(x) for x in lists}) != 1:
        raise NotOneGraph(f"the runs have {', '.join(str(len(x)) for x in lists)} operators")
    place: list[dict[Node, int]] = [{n: i for i, n in enumerate(x)} for x in lists]

    def twin(nodes: Sequence[Node]) -> Node:
        if len({places[n] for places, n in zip(place, nodes)}) != 1:
            raise NotOneGraph(f"the runs differ at {nodes[0].name}")
        return nodes[0]

    for nodes in zip(*lists):
        node = nodes[0]
        if any(n.op != node.op or (n.target != node.target and n.op == "call_function") for n in nodes):
            raise NotOneGraph(f"the runs differ at {node.name}: {', '.join(str(n.target) for n in nodes)}")
        node.meta["extents"] = _extents_of(nodes, sizes)
        if node.op == "get_attr":
            held = [getattr(t.graph, n.target) for t, n in zip(traces, nodes)]
            if any(x is not held[0] and not torch.equal(x, held[0]) for x in held):
                raise NotOneGraph(f"the constant {node.name} depends on the batch")
        elif node.op != "placeholder":
            args = _unify([n.args for n in nodes], sizes, twin, f"an argument of {node.name}")
            kwargs = _unify([n.kwargs for n in nodes], sizes, twin, f"an argument of {node.name}")
            node.args, node.kwargs = args, kwargs
            _check_cut(node)
    return first


def check_shapes(made: Trace, n: int, shapes: Sequence[Sequence[int]]) -> None:
    """Raises NotOneGraph where the results of a run with batch n have other shapes than the graph says."""
    (results,) = next(x for x in made.graph.graph.nodes if x.op == "output").args
    for node, shape in zip(results, shapes):  # type: ignore[arg-type]
        extents = node.meta["extents"]
        if tuple(e.at(n) if isinstance(e, Extent) else e for e in extents) != tuple(shape):
            raise NotOneGraph(f"a result for the batch {n} has the shape {list(shape)}")


def dims_of(node: Node, n: Any) -> Any:
    """The shape of a node's tensor, its extents over the symbol n where the graph has Extents; else None."""
    extents = node.meta.get("extents")
    if extents is None or n is None:
        return None
    return tuple(e.over(n) if isinstance(e, Extent) else e for e in extents)


def resized(x: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """A tensor with as many rows along an axis: its own, again and again."""
    return x.index_select(axis, torch.arange(size) % x.shape[axis])


def work_of(graph: GraphModule) -> int:
    """About how many multiplications a run takes; an element that is only written counts as 16."""
    total = 0
    for node in graph.graph.nodes:
        made = node.meta.get("val")
        name = str(node.target).split(".")[1:2]
        if node.op != "call_function" or not isinstance(made, torch.Tensor) or VIEWS.issuperset(name):
            continue
        operands = [(n, n.meta.get("val")) for n in node.all_input_nodes]
        weights = [x.numel() // x.shape[0] for n, x in operands
                   if n.op == "get_attr" and isinstance(x, torch.Tensor) and x.dim() > 1 and x.numel()]  # fmt: skip
        if name in (["mm"], ["bmm"], ["addmm"], ["baddbmm"]):
            weights.append(operands[-1][1].shape[-2])
        total += made.numel() * max([16, *weights])
    return total
