"""lower_to_mgx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch

import kiln.torch
from kiln.torch.compiling import Maker

from .._log import logger
from .mgx_module import SplitModule
from .utils import LowerPrecision


def lower_to_mgx(
    module: torch.nn.Module,
    input: Any,
    lower_precision: Union[LowerPrecision, str] = LowerPrecision.FP32,
    min_acc_module_size: int = 10,
    use_aten: bool = False,
    verbose_log: bool = False,
    suppress_accuracy_check: bool = False,
    save_subgraph_programs: bool = False,
    tracer_base_cls: Any = torch.fx.Tracer,
    leaf_modules: Any = None,
    **options: Any,
) -> SplitModule:
    """A module whose operators run in kiln's programs, for inputs like the given ones, in the mode of evaluation.

    The module itself stays as it is. Parts of fewer than min_acc_module_size operators beside others are PyTorch's.
    Results that are further from PyTorch's than kiln.torch's tolerance are an AccuracyError unless
    suppress_accuracy_check. save_subgraph_programs writes part_N.kiln into the working folder. use_aten, tracer_base_cls
    and leaf_modules are accepted: kiln always records PyTorch's own operators. Further keywords are options of
    kiln.compile()."""
    precision = LowerPrecision.from_str(lower_precision) if isinstance(lower_precision, str) else lower_precision
    args = (input,) if isinstance(input, torch.Tensor) else tuple(input)
    maker = Maker(
        module,
        precision=None if precision is LowerPrecision.FP32 else precision.value,
        min_size=min_acc_module_size,
        check=not suppress_accuracy_check,
        tolerance=None,
        target=options.pop("target", "cpu"),
        samples=None,
        eager=(),
        options=options,
    )
    made = SplitModule._of(maker, None)
    made._prepare(args, {})
    log = logger("fx_lower")
    log.info("%s: %d programs", type(module).__name__, made.report.programs)
    logger("partitioner").info("%s", made.report)
    if verbose_log:
        print(made.report)
    if save_subgraph_programs:
        for i, part in enumerate(made.programs()):
            part.save(f"part_{i}.kiln")
    return made
