"""What compiled classes say in Python's own types."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import _kiln
from ._profile import Profile


class Port(NamedTuple):
    """A named input or output: its dtype and its shape, whose extents are numbers or Dims."""

    name: str
    dtype: str
    shape: tuple[Any, ...]


class Results(tuple[_kiln.Tensor, ...]):
    """The outputs of a run, in order, and by name: `results["y"]`."""

    names: tuple[str, ...]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"no output {key!r}; there are {', '.join(self.names)}")
            key = self.names.index(key)
        return super().__getitem__(key)

    def asdict(self) -> dict[str, _kiln.Tensor]:
        """The outputs by name."""
        return dict(zip(self.names, self))


class Report(dict[str, Any]):
    """What compilation did: target, steps, passes, remarks, constant_bytes, packed_bytes, packed, optimize_ms, plan_ms.
    `str(report)` is the text that `kiln show` prints."""

    text: str

    def __str__(self) -> str:
        return self.text


def _results(exe: Any, outputs: tuple[_kiln.Tensor, ...]) -> Results:
    made = Results(outputs)
    made.names = exe._output_names
    return made


def _run(exe: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Runs with inputs by name and gives outputs by name. Arrays given as outputs are written in place."""
    return dict(zip(exe._output_names, exe._run(dict(inputs), dict(outputs or {}))))


def _output_shapes(exe: Any, *inputs: Sequence[int]) -> list[tuple[Any, ...]]:
    """The outputs' shapes for inputs of these shapes; an extent that only a run can tell is a Dim."""
    shapes: list[tuple[Any, ...]] = exe._output_shapes(list(inputs))
    return shapes


def _profile(exe: Any, inputs: Mapping[str, Any], runs: int = 10) -> Profile:
    """Times each step of some runs, after one that is not timed."""
    medians, steps, trace = exe._profile(dict(inputs), runs)
    return Profile(json.loads(exe._report_json)["steps"], medians, steps, trace, runs)


def _report(exe: Any) -> Report:
    """What compilation did: a dict whose text is that of `kiln show`."""
    made = Report(json.loads(exe._report_json))
    made.text = exe._report_text
    return made


def _text(exe: Any) -> str:
    def ports(all_ports: Sequence[Port]) -> str:
        return ", ".join(f"{p.name}: {p.dtype}[{', '.join(map(str, p.shape))}]" for p in all_ports)

    return f"kiln.Executable({ports(exe.inputs)} -> {ports(exe.outputs)})"


def _html(exe: Any) -> str:
    report = exe.report
    about = f"{len(report['steps'])} kernels for target {report['target']}"
    return f"<p><code>{html.escape(repr(exe))}</code><br>{html.escape(about)}</p>{exe.svg()}"


def _write_onnx(program: Any, path: Any, *, form: str = "usual") -> None:
    """Writes the program as an ONNX model. Quantized tensors are written with QuantizeLinear and DequantizeLinear
    around ops, and weights in blocks as operators of com.microsoft; `form="qdq"` writes these as DequantizeLinear, too,
    `form="qoperator"` ops as operators that read and write integers (QLinearConv) where all their values have scales,
    as with `results=True` of quantize()."""
    _kiln._write_onnx(program, path, form)


def _ports(attribute: str, doc: str) -> property:
    def get(self: Any) -> tuple[Port, ...]:
        return tuple(Port(*p) for p in getattr(self, attribute))

    return property(get, doc=doc)


def complete() -> None:
    """Adds to the compiled classes what is written in Python."""
    for each in (_kiln.Executable, _kiln.Program):
        setattr(each, "inputs", _ports("_inputs", "The inputs, in order."))
        setattr(each, "outputs", _ports("_outputs", "The outputs, in order."))
    setattr(_kiln.Program, "weights", _ports("_weights", "The weights that compile() binds."))
    setattr(_kiln.Program, "write_onnx", _write_onnx)
    for function in (_results, _run, _output_shapes, _profile):
        name = function.__name__ if function is _results else function.__name__[1:]
        setattr(_kiln.Executable, name, function)
    setattr(_kiln.Executable, "report", property(_report, doc=_report.__doc__))
    setattr(_kiln.Executable, "__repr__", _text)
    setattr(_kiln.Executable, "_repr_html_", _html)
