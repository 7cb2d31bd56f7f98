"""Structural copies of modules: objects of their own over the same tensors, which a traced run may change."""

from __future__ import annotations

import copy
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.nn import Module

_CONTAINERS = (list, dict, set, deque)


def root_of(module: Any) -> Any:
    """The module that is called: of a bound method what it is bound to; None for another function."""
    if isinstance(module, types.MethodType) and isinstance(module.__self__, Module):
        return module.__self__
    return module if isinstance(module, Module) else None


class Twin:
    """A copy of a module, or of the one that a method is bound to, in the mode of evaluation. Its tensors are the module's,
    its attributes' lists, dicts and sets are copies."""

    def __init__(self, module: Any) -> None:
        self._copies: dict[int, Any] = {}
        self._originals: list[Any] = []
        root = root_of(module)
        if root is None:
            self.root, self.call = None, module
            return
        self._copy(root)
        for m in self._originals:
            made = self._copies[id(m)]
            made.__dict__.update((k, self._shallow(v)) for k, v in m.__dict__.items())
        self.root = self._copies[id(root)]
        self.call = self.root if root is module else types.MethodType(module.__func__, self.root)
        for m in self.root.modules():
            if hasattr(m, "training"):  # a frozen one of TorchScript has no mode
                m.training = False

    def _copy(self, m: Any) -> None:
        if id(m) in self._copies:
            return
        if isinstance(m, torch.jit.ScriptModule):  # with those within
            self._copies[id(m)] = torch.jit._recursive.wrap_cpp_module(m._c.__copy__())
            return
        self._copies[id(m)] = object.__new__(type(m))
        self._originals.append(m)
        for child in m._modules.values():
            if child is not None:
                self._copy(child)

    def _shallow(self, x: Any) -> Any:
        if not isinstance(x, _CONTAINERS):
            return self._mapped(x)
        made: Any = copy.copy(x)
        for i in range(len(made)) if isinstance(made, (list, deque)) else list(made) if isinstance(made, dict) else ():
            made[i] = self._mapped(made[i])
        return made

    def _mapped(self, x: Any) -> Any:
        if isinstance(x, types.MethodType) and id(x.__self__) in self._copies:
            return types.MethodType(x.__func__, self._copies[id(x.__self__)])
        return self._copies.get(id(x), x) if isinstance(x, Module) else x

    def put(self, to: Mapping[int, torch.Tensor]) -> None:
        """Puts other tensors in the place of parameters and buffers, by id."""
        for m in self.root.modules() if self.root is not None else ():
            if isinstance(m, torch.jit.ScriptModule):
                for name, tensor in _own(m):
                    m._c.setattr(name, to[id(tensor)])
                continue
            for table in (m._parameters, m._buffers):
                for name, tensor in table.items():
                    if tensor is not None and id(tensor) in to:
                        table[name] = to[id(tensor)]
            # weights that a module keeps beside its parameters, as nn.RNN does
            for name, held in list(m.__dict__.items()):
                if isinstance(held, list) and any(id(x) in to for x in held):
                    m.__dict__[name] = [to.get(id(x), x) for x in held]

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by name, those that are the same tensor, too."""
        named = self.root.named_modules() if self.root is not None else ()
        return {f"{prefix}.{name}" if prefix else name: t for prefix, m in named for name, t in _own(m)}

    def rebound(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Tensors that were plain attributes of the module, and others are in their place."""
        for m in self._originals:
            now = self._copies[id(m)].__dict__
            for name, was in m.__dict__.items():
                if isinstance(was, torch.Tensor) and now.get(name) is not was:
                    yield f"{type(m).__name__}.{name}", was


def _own(module: Any) -> list[tuple[str, torch.Tensor]]:
    tables = (module._parameters, module._buffers)
    return [(name, tensor) for table in tables for name, tensor in table.items() if tensor is not None]


def state_of(module: Any) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each once."""
    out: dict[str, torch.Tensor] = {}
    if module is not None:
        for named in (module.named_parameters(), module.named_buffers()):
            out.update(named)
    return out
