"""Times of a program's steps."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Union


class Step(NamedTuple):
    """A step of the plan: its kernel, the instruction it comes from, its median time, and its share of all."""

    kernel: str
    instruction: str
    ms: float
    share: float


class Profile:
    """Times of the steps of some runs: `print(profile)` is a table, save() writes a trace."""

    def __init__(
        self,
        steps: Sequence[dict[str, Any]],
        medians: Sequence[float],
        events: Sequence[tuple[int, float, float]],
        trace: str,
        runs: int,
    ) -> None:
        total = sum(medians) or 1.0
        self.runs = runs
        self.steps = [Step(s["kernel"], s["instruction"], ms, ms / total) for s, ms in zip(steps, medians)]
        self.events = list(events)
        self.trace_json = trace

    @property
    def ms(self) -> float:
        """The sum of the steps' medians."""
        return sum(s.ms for s in self.steps)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes when each step ran in the JSON of Chrome's trace events: ui.perfetto.dev opens it."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.trace_json)

    def __str__(self) -> str:
        rows = [f"{'ms':>10} {'%':>6}  kernel"]
        rows += [f"{s.ms:10.4f} {100 * s.share:6.1f}  {s.kernel} {s.instruction}".rstrip() for s in self.steps]
        rows.append(f"{self.ms:10.4f} {100.0:6.1f}  all {len(self.steps)} steps, medians of {self.runs} runs")
        return "\n".join(rows)

    def __repr__(self) -> str:
        return f"kiln.Profile({len(self.steps)} steps, {self.ms:.4f} ms)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{s.ms:.4f}</td><td>{100 * s.share:.1f}</td><td>{html.escape(s.kernel)}</td>"
            f"<td>{html.escape(s.instruction)}</td></tr>"
            for s in self.steps
        )
        return f"<table><tr><th>ms</th><th>%</th><th>kernel</th><th>instruction</th></tr>{rows}</table>"
