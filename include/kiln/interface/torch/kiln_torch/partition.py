"""Which operators of a graph kiln takes, and in how many parts."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from .extents import Extent, dims_of, map_numbers
from .record import VIEWS, is_random, nbytes, shape_only

# What rounds weights is told to kiln, which keeps them as integers.
_KEPT = ("fake_quantize", "quantize", "dequantize")
_MOST_FOLDED = 1 << 24  # bytes of a constant that is computed at compile time
# Operators that compute nothing.
_FREE = {"view", "_unsafe_view", "t", "transpose", "permute", "expand", "unsqueeze", "squeeze", "select",
         "slice", "clone", "detach", "alias", "split", "unbind", "as_strided", "reshape", "unsafe_split", "split_with_sizes"}


class Part(NamedTuple):
    """Nodes that run together, in order: as one program of kiln's, or one by one by PyTorch."""

    compiled: bool
    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    def operators(self) -> Counter[str]:
        """How often it has each operator."""
        return Counter(text_of(n) for n in self.nodes if n.target is not operator.getitem)


class Partition(NamedTuple):
    """A graph's parts in the order in which they run, and why the operators of PyTorch's parts are there."""

    parts: tuple[Part, ...]
    reasons: dict[Node, str]


def text_of(node: Node) -> str:
    """The operator's name: add.Tensor."""
    return str(node.target).removeprefix("aten.").removesuffix(".default")


def reads_memory(node: Node) -> str | None:
    """Why what a node gives depends on the strides of an input; None where it does not."""
    if text_of(node) not in ("as_strided", "as_strided_copy"):
        return None
    shown: Any = node.args[0]
    while isinstance(shown, Node) and shown.op == "call_function" and text_of(shown).split(".")[0] in VIEWS:
        shown = shown.args[0]
    of_input = isinstance(shown, Node) and shown.op == "placeholder"
    return "it reads the memory of an input, which may have other strides" if of_input else None


def fold(graph: GraphModule) -> None:
    """Computes what depends on no input, so that it is a constant."""
    constant = {n for n in graph.graph.nodes if n.op == "get_attr"}
    values: dict[Node, Any] = {n: getattr(graph, n.target) for n in constant}

    def folds(node: Node) -> bool:
        if node.op != "call_function" or any(n not in values for n in node.all_input_nodes):
            return False
        if node.target is operator.getitem:
            return True
        found: list[Extent] = []
        map_numbers((node.args, node.kwargs), found.append)
        made = node.meta.get("val")
        sizes = [nbytes(x) for x in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(x, torch.Tensor)]
        name = node.target._schema.name.split("::")[1]  # type: ignore[union-attr]
        if node.target._schema.is_mutable:  # type: ignore[union-attr]
            return False
        return not found and not is_random(node.target, node.args, node.kwargs) and not name.startswith(_KEPT) and sum(sizes) <= _MOST_FOLDED

    with torch.no_grad():
        for node in list(graph.graph.nodes):
            if folds(node):
                args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)  # type: ignore[misc]
                values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    # weights that are only seen in another shape or order stay where they are: kiln reads them so
    seen = {n for n in constant if not n.meta.get("fresh")}
    for node in values:
        if node.op == "call_function" and node.all_input_nodes and all(n in seen for n in node.all_input_nodes):
            name = "getitem" if node.target is operator.getitem else node.target._schema.name.split("::")[1]  # type: ignore[union-attr]
            if name in VIEWS:
                seen.add(node)
    for node, value in values.items():
        if node in seen or not isinstance(value, torch.Tensor) or all(n in values for n in node.users):
            continue
        name = f"folded_{node.name}"
        graph.register_buffer(name, value)
        with graph.graph.inserting_before(node):
            made = graph.graph.create_node("get_attr", name)
        made.meta = {**node.meta, "fresh": True}
        node.replace_all_uses_with(made)
    graph.graph.eliminate_dead_code()


def _groups(nodes: Sequence[Node], compiled: dict[Node, bool]) -> dict[Node, int]:
    """The number of its part for each node: parts alternate, and none reads what comes of a later one."""
    level: dict[Node, int] = {}
    for node in nodes:
        at = 0
        for n in node.all_input_nodes:
            if n in level:
                at = max(at, level[n] + (compiled[n] != compiled[node]))
        level[node] = at if at % 2 == (not compiled[node]) else at + 1
    return level


def split(graph: GraphModule, why_not: Callable[[Node], str | None], min_size: int) -> Partition:
    """Parts of a graph. A part of fewer than min_size operators that compute is PyTorch's, unless it is all."""
    nodes = [n for n in graph.graph.nodes if n.op == "call_function"]
    reasons: dict[Node, str] = {}
    for node in nodes:
        if node.target is operator.getitem:
            if node.args[0] in reasons:
                reasons[node] = reasons[node.args[0]]  # type: ignore[index]
        elif (why := why_not(node)) is not None:
            reasons[node] = why
    while True:
        compiled = {n: n not in reasons for n in nodes}
        level = _groups(nodes, compiled)
        small = []
        for at in sorted({level[n] for n in nodes if compiled[n]}):
            group = [n for n in nodes if level[n] == at]
            if sum(map(_computes, group)) < min_size and reasons:
                small.append(group)
        if not small:
            break
        for node in small[0]:
            reasons[node] = f"with its neighbors, fewer than min_size = {min_size} operators"
    parts = [_part(graph, [n for n in nodes if level[n] == at], at % 2 == 0) for at in sorted(set(level.values()))]
    return Partition(tuple(parts), reasons)


def _computes(node: Node) -> bool:
    return node.target is not operator.getitem and node.target._schema.name.split("::")[1] not in _FREE  # type: ignore[union-attr]


def _part(graph: GraphModule, nodes: Sequence[Node], compiled: bool) -> Part:
    own = set(nodes)
    inputs = dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in own and i.op != "get_attr")
    outputs = [n for n in nodes if any(u not in own for u in n.users) and isinstance(n.meta.get("val"), torch.Tensor)]
    # several results are handed on one by one
    more = [i for n in nodes if not isinstance(n.meta.get("val"), torch.Tensor) for i in n.users if i not in own]
    if more:
        raise AssertionError(f"{more[0].name} is apart from what makes it")
    return Part(compiled, tuple(nodes), tuple(inputs), tuple(outputs))


class PartGraph:
    """A part as a graph of its own, whose constants are attributes of the whole."""

    def __init__(self, whole: GraphModule, part: Part, n: Any) -> None:
        self._whole = whole
        self.graph = Graph()
        twins: dict[Node, Node] = {}

        def twin(node: Node) -> Node:
            if node not in twins:
                twins[node] = self.graph.create_node("get_attr", node.target)
                twins[node].meta = {**node.meta, "constant": getattr(whole, node.target)}  # type: ignore[arg-type]
            return twins[node]

        for i, node in enumerate(part.inputs):
            twins[node] = self.graph.placeholder(f"input_{i}")
            twins[node].meta = {"val": shape_only(node.meta["val"]), "dims": dims_of(node, n)}
        for node in part.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), twin)  # type: ignore[misc]
            args, kwargs = map_numbers((args, kwargs), lambda e: e.over(n))
            twins[node] = self.graph.create_node("call_function", node.target, args, kwargs, node.name)
            twins[node].meta = {**node.meta, "whole": node}
        self.graph.output(tuple(twins[n] for n in part.outputs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)
