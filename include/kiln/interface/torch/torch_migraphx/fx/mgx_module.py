"""Modules that run programs: MGXModule one of them, SplitModule those of a whole module."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import torch

import kiln
from kiln.torch import CompiledModule
from kiln.torch.steps import EagerStep, KilnStep
from kiln.torch.tensors import from_kiln, to_kiln


def _bytes_of(exe: kiln.Executable) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.kiln")
        exe.save(path)
        with open(path, "rb") as file:
            return file.read()


def _of_bytes(data: bytes) -> kiln.Executable:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.kiln")
        with open(path, "wb") as file:
            file.write(data)
        return kiln.load(path)


class MGXModule(torch.nn.Module):
    """Runs a program on tensors: a kiln.Program, which is compiled, a kiln.Executable, or a migraphx.program of kiln's
    package of that name. state_dict() and pickle carry the compiled program."""

    def __init__(
        self,
        program: Any = None,
        input_names: Optional[Sequence[str]] = None,
        output_names: Optional[Sequence[str]] = None,
        quantize_fp16: bool = False,
        quantize_bf16: bool = False,
        exhaustive_tune: bool = False,
    ) -> None:
        super().__init__()
        self.program: Optional[kiln.Executable] = None
        self.input_names, self.output_names = input_names, output_names
        self.quantize_fp16, self.quantize_bf16, self.exhaustive_tune = quantize_fp16, quantize_bf16, exhaustive_tune
        if program is not None:
            self._take(program)

    def _take(self, program: Any) -> None:
        if not isinstance(program, (kiln.Program, kiln.Executable)):
            program = _of_migraphx(program)
        if isinstance(program, kiln.Program):
            precision = "fp16" if self.quantize_fp16 else "bf16" if self.quantize_bf16 else None
            more = {"tune": True} if self.exhaustive_tune else {}
            program = kiln.compile(program, precision=precision, **more)
        self.program = program
        inputs, outputs = [p.name for p in program.inputs], [p.name for p in program.outputs]
        self.input_names = list(self.input_names) if self.input_names is not None else inputs
        self.output_names = list(self.output_names) if self.output_names is not None else outputs
        if sorted(self.input_names) != sorted(inputs):
            raise kiln.ArgumentError(f"input_names are the program's: found {self.input_names}, expected {inputs}")
        if not set(self.output_names) <= set(outputs):
            raise kiln.ArgumentError(f"output_names are the program's: found {self.output_names}, expected {outputs}")

    def forward(self, *inputs: torch.Tensor) -> Any:
        if self.program is None:
            raise RuntimeError("an MGXModule that holds a program: found an empty one")
        if len(inputs) != len(self.input_names):
            raise kiln.ArgumentError(f"{len(self.input_names)} inputs: found {len(inputs)}")
        made = self.program.run({name: to_kiln(x) for name, x in zip(self.input_names, inputs)})
        outputs = tuple(from_kiln(made[name]) for name in self.output_names)
        return outputs[0] if len(outputs) == 1 else outputs

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        if self.program is None:
            raise RuntimeError("an MGXModule that holds a program: found an empty one")
        destination[prefix + "program"] = bytearray(_bytes_of(self.program))
        for name in ("input_names", "output_names", "quantize_fp16"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for name in ("input_names", "output_names", "quantize_fp16"):
            setattr(self, name, state_dict[prefix + name])
        self._take(_of_bytes(bytes(state_dict[prefix + "program"])))

    def __getstate__(self) -> dict[str, Any]:
        held = None if self.program is None else _bytes_of(self.program)
        return {**self.__dict__, "program": held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.program is not None:
            self.program = _of_bytes(state["program"])

    def __deepcopy__(self, memo: Any) -> MGXModule:
        made = MGXModule(None, self.input_names, self.output_names, self.quantize_fp16, self.quantize_bf16, self.exhaustive_tune)
        made.program = self.program  # nothing in it changes
        return made


def _of_migraphx(program: Any) -> kiln.Program:
    import migraphx

    if not isinstance(program, migraphx.program):
        raise kiln.ArgumentError(f"a program is kiln's or migraphx's: found {type(program).__name__}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.mxr")
        migraphx.save(program, path)
        return kiln.read(path)


class EagerPart(torch.nn.Module):
    """Operators that PyTorch runs."""

    def __init__(self, steps: Sequence[EagerStep]) -> None:
        super().__init__()
        self.steps = list(steps)

    def __str__(self) -> str:
        return "\n".join(str(s.target) for s in self.steps)


class SplitModule(CompiledModule):
    """A lowered module. Its parts, in the order in which they run, are `_run_on_acc_N`, an MGXModule over a program,
    and `_run_on_cpu_N`, operators of PyTorch's."""

    def parts(self) -> dict[str, torch.nn.Module]:
        """The parts of what was lowered first, by name."""
        out: dict[str, torch.nn.Module] = {}
        eager: list[EagerStep] = []
        if not self._variants:
            return out

        def close() -> None:
            if eager:
                out[f"_run_on_cpu_{len(out)}"] = EagerPart(eager)
                eager.clear()

        for step in next(iter(self._variants.values())).steps.steps:
            if isinstance(step, KilnStep):
                close()
                out[f"_run_on_acc_{len(out)}"] = MGXModule(step.exe)
            else:
                eager.append(step)
        close()
        return out

    def programs(self) -> list[kiln.Executable]:
        """The compiled programs, in the order in which they run."""
        return [p.program for p in self.parts().values() if isinstance(p, MGXModule) and p.program is not None]

    def times_of_parts(self, *inputs: torch.Tensor) -> list[float]:
        """Seconds that each part takes in one run."""
        key, tensors, n = self._key.of(inputs, {})
        variant = self._variants.get(key) or self._prepare(inputs, {})
        tensors += [self._buffers[name] for name in variant.state]
        clock = [time.perf_counter()]
        with torch.no_grad():
            variant.steps.run(tensors, n, lambda: clock.append(time.perf_counter()))
        out: list[float] = []
        eager = False
        for step, begin, end in zip(variant.steps.steps, clock, clock[1:]):
            if isinstance(step, KilnStep) or not eager:
                out.append(0.0)
            out[-1] += end - begin
            eager = not isinstance(step, KilnStep)
        return out

    def named_children(self) -> Iterator[tuple[str, torch.nn.Module]]:
        yield from self.parts().items()

    def children(self) -> Iterator[torch.nn.Module]:
        yield from self.parts().values()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_run_on_"):
            parts = self.parts()
            if name in parts:
                return parts[name]
        return super().__getattr__(name)

    def print_subgraph(self, name: str) -> None:
        """Prints a part: a program's optimized form, or PyTorch's operators."""
        parts = self.parts()
        if name not in parts:
            raise AttributeError(f"no part {name!r}; there are {', '.join(parts)}")
        part = parts[name]
        print(part.program.optimized if isinstance(part, MGXModule) and part.program is not None else part)

    def print_all_subgraphs(self) -> None:
        """Prints all parts."""
        for name in self.parts():
            print(f"Submodule: {name}")
            self.print_subgraph(name)
