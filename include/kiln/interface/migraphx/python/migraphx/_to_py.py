"""Python code that makes a program again."""

from __future__ import annotations

import base64
from typing import Any

from . import _migraphx

_MOST_ELEMENTS = 4096  # of all literals that stand as lists


def text_of(p: _migraphx.program) -> str:
    """A program of MIGraphX's operators is made operator by operator. One that is compiled, that a model was read into,
    whose operators are kiln's own, or that has large literals, is loaded from its bytes."""
    lines = ["import migraphx", ""]
    made = None if p.is_compiled() else _instructions(p)
    if made is None:
        text = base64.b64encode(_migraphx.save_buffer(p)).decode()
        return "\n".join(["import base64", *lines, f'p = migraphx.load_buffer(base64.b64decode("{text}"))', ""])
    return "\n".join([*lines, "p = migraphx.program()", *made, ""])


def _instructions(p: _migraphx.program) -> list[str] | None:
    modules = {m.name(): f"m{k}" for k, m in enumerate(p._modules())}
    names: dict[Any, str] = {}
    elements = 0
    lines = []
    for name, var in modules.items():
        lines.append(f"{var} = p.get_main_module()" if var == "m0" else f"{var} = p.create_module({name!r})")
    # a body reads values of the module around it, which run it afterwards
    todo = {m.name(): list(m) for m in p._modules()}
    while any(todo.values()):
        before = len(lines)
        for name, rest in todo.items():
            while rest and _is_ready(rest[0], names, todo):
                i = rest.pop(0)
                code = _code_of(i, [names.get(x, "") for x in i.inputs()], [modules[m] for m in i._module_inputs()])
                if i.name() == "@literal":
                    elements += i.shape().elements()
                if code is None or elements > _MOST_ELEMENTS:
                    return None
                names[i] = f"x{len(names)}"
                lines.append(f"{names[i]} = {modules[name]}.{code}")
        if len(lines) == before:
            return None
    return lines


def _is_ready(i: _migraphx.instruction_ref, names: dict[Any, str], todo: dict[str, list[Any]]) -> bool:
    return all(x in names for x in i.inputs()) and not any(todo[m] for m in i._module_inputs())


def _code_of(i: _migraphx.instruction_ref, inputs: list[str], modules: list[str]) -> str | None:
    args = f"[{', '.join(inputs)}]"
    if i.name() == "@param":
        return f"add_parameter({i._label()!r}, {_shape(i.shape())})"
    if i.name() == "@literal":
        return f"add_literal(migraphx.create_argument({_shape(i.shape())}, {i.get_literal().tolist()}))"
    if i.name() == "@return":
        return f"add_return({args})"
    values = i.op().values()
    try:
        if _migraphx.op(i.name(), **values) != i.op():
            return None
    except (RuntimeError, TypeError):
        return None
    return f"add_instruction(migraphx.op({i.name()!r}, **{values!r}), {args}, [{', '.join(modules)}])"


def _shape(s: _migraphx.shape) -> str:
    if s.dynamic():
        ranges = (f"migraphx.shape.dynamic_dimension({d.min}, {d.max}, {d.optimals or 'set()'})" for d in s.dyn_dims())
        return f"migraphx.shape(type={s.type_string()!r}, dyn_dims=[{', '.join(ranges)}])"
    return f"migraphx.shape(type={s.type_string()!r}, lens={s.lens()}, strides={s.strides()})"
