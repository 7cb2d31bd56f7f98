"""The backends migraphx, migraphx_pretraced and migraphx_aot of torch.compile, where PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import kiln
import kiln.torch.dynamo

from .._log import logger
from . import quantization

# What has a meaning for kiln; deallocate, verbose and use_aot are accepted.
_TAKEN = {"fp16", "bf16", "exhaustive_tune", "deallocate", "verbose", "save_mxr", "use_aot", "load_compiled", "save_compiled"}


def migraphx_backend(graph: Any, example_inputs: Sequence[Any], options: Any = None, **more: Any) -> Callable[..., Any]:
    """A function that runs a GraphModule in kiln's programs; it is called by torch.compile(backend="migraphx")."""
    given = {**(options or {}), **more}
    unknown = sorted(set(given) - _TAKEN)
    if unknown:
        raise kiln.ArgumentError(f"options are {', '.join(sorted(_TAKEN))}: found {', '.join(unknown)}")
    for name in ("save_mxr", "load_compiled", "save_compiled"):
        if given.get(name):
            raise kiln.ArgumentError(f"{name}: programs of torch.compile are not kept; save what lower_to_mgx gives")
    logger("dynamo_lower").info("a graph of %d nodes", len(graph.graph.nodes))
    how: dict[str, Any] = {"tune": True} if given.get("exhaustive_tune") else {}
    how["precision"] = "fp16" if given.get("fp16") else "bf16" if given.get("bf16") else None
    return kiln.torch.dynamo.backend(graph, example_inputs, **how)


def _missing() -> str:
    return f"torch.compile needs PyTorch 2 with torch._dynamo: found PyTorch {torch.__version__}; fx.lower_to_mgx needs no more"


available = all([
    kiln.torch.dynamo.register(name, migraphx_backend) for name in ("migraphx", "migraphx_pretraced", "migraphx_aot")
])
"""Whether this PyTorch has torch.compile, and so these backends."""


def require() -> None:
    """Raises an ImportError that says what is missing for torch.compile."""
    if not available:
        raise ImportError(_missing())


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and not available:
        raise ImportError(f"torch_migraphx.dynamo.{name}: {_missing()}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["available", "migraphx_backend", "quantization", "require"]
