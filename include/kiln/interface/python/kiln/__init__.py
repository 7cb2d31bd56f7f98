"""kiln, a deep-learning compiler: models from ONNX or from a fluent builder, compiled for the CPU or a GPU."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _executable, _kiln, ops
from ._custom import CustomOp, TensorType, custom_op
from ._executable import Port, Report, Results
from ._kiln import (
    Accuracy,
    ArgumentError,
    Builder,
    Dim,
    Error,
    Executable,
    Program,
    Ranges,
    Tensor,
    TensorAccuracy,
    Value,
    __version__,
    from_dlpack,
    read_tensor,
    symbol,
    tensor,
    write_tensor,
)
from ._profile import Profile, Step

__all__ = [
    "Accuracy",
    "ArgumentError",
    "Builder",
    "CustomOp",
    "Dim",
    "Error",
    "Executable",
    "Option",
    "Port",
    "Profile",
    "Program",
    "Ranges",
    "Report",
    "Results",
    "SavedProgram",
    "Step",
    "Tensor",
    "TensorAccuracy",
    "TensorType",
    "Value",
    "__version__",
    "calibrate",
    "compare_accuracy",
    "compile",
    "custom_op",
    "from_dlpack",
    "inspect",
    "load",
    "ops",
    "options",
    "quantize",
    "quantize_options",
    "read",
    "read_tensor",
    "symbol",
    "tensor",
    "write_tensor",
]

Path = Union[str, "os.PathLike[str]"]
Extents = Sequence[Union[int, str, Dim]]


class SavedProgram(NamedTuple):
    """What a file with a saved program says of itself."""

    version: str
    target: str
    format: str
    has_source: bool
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    options: dict[str, str]
    remarks: list[str]
    file_bytes: int
    constant_bytes: int


class Option(NamedTuple):
    """An option of compilation, as `compile(..., name=value)` takes it."""

    name: str
    kind: str
    default: str
    help: str


def read(
    model: Path | bytes,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Extents] | None = None,
    values: Mapping[str, Any] | None = None,
    keep_inputs: Sequence[str] = (),
    directory: Path = ".",
    layout: str = "NHWC",
    outputs: Sequence[str] = (),
    batch: int = 0,
    signature: str = "",
    tag: str = "",
) -> Program:
    """A Program from an ONNX file, from a graph or the folder of a SavedModel of TensorFlow, from a TFLite file, from
    the bytes of one, or from a file with a saved program.

    `dims` gives named extents a number, `shapes` inputs their extents, `values` inputs a value that decides shapes;
    `keep_inputs` names inputs with a default that stay inputs. `directory` holds the external data of bytes, or the
    variables of a SavedModel.

    For TensorFlow: `layout` ("NHWC" or "NCHW") is that of images where a node does not say, `outputs` names the values
    wanted, `batch` is the extent of dims that are open (0 keeps them open); `signature` and `tag` choose among those of
    a SavedModel; `batch` and `signature` are for TFLite files, too."""
    graph = (layout, list(outputs), batch, signature, tag)
    how = (dict(dims or {}), dict(shapes or {}), dict(values or {}), list(keep_inputs), graph)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _kiln._parse(model, os.fspath(directory), *how)
    return _kiln._read(model, *how)


def compile(
    model: Path | bytes | Program | Builder,
    target: str = "cpu",
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Extents] | None = None,
    values: Mapping[str, Any] | None = None,
    keep_inputs: Sequence[str] = (),
    directory: Path = ".",
    layout: str = "NHWC",
    outputs: Sequence[str] = (),
    batch: int = 0,
    signature: str = "",
    tag: str = "",
    weights: Mapping[str, Any] | None = None,
    precision: str | None = None,
    ranges: Ranges | Path | None = None,
    progress: bool | Callable[[int, int, str], None] = False,
    **options: Any,
) -> Executable:
    """Compiles a model for a target: "cpu" ("eigen"), "gpu" ("hip", "hip:0", "hip:gfx90a") or "ref" ("reference").

    `model` is a file or bytes that read() takes, a Program, or a Builder, which is finished. The keywords from `dims` to
    `tag` are read()'s. `weights` binds weights by name.
    `precision` and `ranges` are those of quantize(). `progress` shows how far tuning is: True draws a bar where tqdm is
    installed, a function is called with the number of kernels that are chosen, their number, and the name of the next.
    Every other keyword is an option of compilation, such as `threads=4` or `tune=True`: see options()."""
    texts = _texts_of(options)
    said_of_graph = layout != "NHWC" or outputs or batch or signature or tag
    if isinstance(model, Builder):
        model = model.finish()
    if not isinstance(model, Program):
        said = dims or shapes or values or keep_inputs or said_of_graph
        decided = said or weights or precision is not None or ranges is not None
        if isinstance(model, (str, os.PathLike)) and not decided and _kiln._is_saved_program(model):
            return _kiln._load(model, target, texts, False)
        model = read(
            model, dims=dims, shapes=shapes, values=values, keep_inputs=keep_inputs, directory=directory, layout=layout,
            outputs=outputs, batch=batch, signature=signature, tag=tag,
        )  # fmt: skip
    elif dims or shapes or values or keep_inputs or said_of_graph:
        raise ArgumentError(
            "dims, shapes, values, keep_inputs, layout, outputs, batch, signature and tag are for models: those of a Program are decided"
        )
    if precision is not None or ranges is not None:
        if precision is None:
            raise ArgumentError("ranges are of a precision: name it, such as precision=\"int8\"")
        model = quantize(model, precision, ranges=ranges)
    with _Progress(progress) as report:
        return _kiln._compile(model, target, dict(weights or {}), texts, report)


def calibrate(
    model: Path | bytes | Program,
    samples: Iterable[Mapping[str, Any]],
    *,
    precision: str = "int8",
    target: str = "cpu",
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Ranges:
    """The ranges of the values that a precision asks for, from samples: dicts of arrays by input, of which one is held
    at a time. `precision` is "int8", "fp8" or "fp16".

    Options are those of quantize(); `method="percentile"`, `percentile` and `bins` choose ranges. `progress` is called
    with the number of samples so far."""
    program = model if isinstance(model, Program) else read(model)
    return _kiln._calibrate(program, precision, samples, target, _texts_of(options), progress)


def quantize(
    model: Path | bytes | Program,
    precision: str,
    *,
    ranges: Ranges | Path | None = None,
    samples: Iterable[Mapping[str, Any]] | None = None,
    target: str = "cpu",
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Program:
    """A Program in another precision: "fp16", "bf16", "fp8", "int8", "dynamic-int8", "int4", "mxfp4", "nvfp4" or
    "mxfp8". "int8" and "fp8" need ranges, of calibrate() or a calibration table, or samples to calibrate with;
    `weight_method="gptq"` of "int4" needs samples. Inputs and outputs keep their types. Program.write_onnx() writes what
    it gives for ONNX Runtime.

    Options, such as `exclude=["head"]`, `min_sqnr=30`, `overrides={"x": {"type": "i8"}}` or `block_size=64`, are those of quantize_options(); one that
    means nothing to the precision is an error. `progress` is called with the number of samples so far."""
    program = model if isinstance(model, Program) else read(model)
    for several in ("min_sqnr", "smooth_quant"):
        if samples is not None and options.get(several) is not None and iter(samples) is samples:
            raise ArgumentError(f"{several} reads samples several times: give a list of them, not an iterator")
    if ranges is not None and not isinstance(ranges, Ranges):
        ranges = Ranges.read(ranges)
    return _kiln._quantize(program, precision, ranges, samples, target, _texts_of(options), progress)


def compare_accuracy(
    reference: Path | bytes | Program,
    quantized: Path | bytes | Program,
    samples: Iterable[Mapping[str, Any]],
    *,
    target: str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> Accuracy:
    """Where a program that was quantized, or its ONNX file, loses accuracy beside the one that it was made of: both are
    run on the samples, dicts of arrays by input, of which one is held at a time."""
    first, second = (m if isinstance(m, Program) else read(m) for m in (reference, quantized))
    return _kiln._compare_accuracy(first, second, samples, target, progress)


def quantize_options() -> tuple[Option, ...]:
    """The options that quantize() and calibrate() take by keyword."""
    return tuple(Option(*row) for row in _kiln._quantize_options())


def load(path: Path, target: str = "cpu", *, check_constants: bool = False, **options: Any) -> Executable:
    """An Executable from a file that Executable.save() or `kiln compile` wrote. Where it was compiled for another
    machine, the source in it is compiled with `options`. `check_constants` compares checksums now, not at the first
    run."""
    return _kiln._load(path, target, _texts_of(options), check_constants)


def inspect(path: Path) -> SavedProgram:
    """What a file with a saved program says of itself."""
    found = _kiln._inspect(path)
    for side in ("inputs", "outputs"):
        found[side] = tuple(Port(*p) for p in found[side])
    return SavedProgram(**found)


def options() -> tuple[Option, ...]:
    """The options that compile() and load() take by keyword."""
    return tuple(Option(*row) for row in _kiln._options())


def _texts_of(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    out = []
    for name, value in options.items():
        if value is None:
            text = ""
        elif isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, Mapping) and all(isinstance(v, Mapping) for v in value.values()):
            text = json.dumps({k: dict(v) for k, v in value.items()}) if value else ""
        elif isinstance(value, Mapping):
            text = _kiln._option_text(list(value.items()))
        elif isinstance(value, os.PathLike):
            text = os.fspath(value)
        elif isinstance(value, (list, tuple)):
            text = ",".join(str(v).replace("\\", "\\\\").replace(",", "\\,") for v in value)
        else:
            text = str(value)
        out.append((name, text))
    return out


class _Progress:
    """Calls of a function of the caller's, or a bar of tqdm."""

    def __init__(self, how: bool | Callable[[int, int, str], None]) -> None:
        self.how = how
        self.bar: Any = None

    def __enter__(self) -> Callable[[int, int, str], None] | None:
        if not isinstance(self.how, bool):
            return self.how
        if not self.how:
            return None
        try:
            tqdm = importlib.import_module("tqdm.auto")
        except ImportError:
            return None
        self.bar = tqdm.tqdm(desc="tuning", unit="kernel")
        return self.show

    def show(self, done: int, total: int, what: str) -> None:
        self.bar.total = total
        self.bar.set_postfix_str(what, refresh=False)
        self.bar.update(done - self.bar.n)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


_executable.complete()
