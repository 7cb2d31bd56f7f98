"""Prints the stub of kiln.ops: a function for each op, with its attributes."""

import keyword

from kiln import _kiln

TYPES = {"bool": "bool", "int": "int", "float": "float", "text": "str", "dtype": "Any", "dimension": "int | Dim"}


def type_of(kind):
    if kind.startswith("list of "):
        return f"Sequence[{type_of(kind[8:])}]"
    if "|" in kind:
        return "Literal[" + ", ".join(f'"{word}"' for word in kind.split("|")) + "]"
    return TYPES[kind]


rows = _kiln._op_table()
functions = []
for name, _, _, attributes in rows:
    assert not keyword.iskeyword(name)
    given = "".join(f", {a}: {type_of(kind)} = ..." for a, kind, _ in attributes)
    functions.append(f"def {name}(*operands: Any{given}) -> Value: ...")
print("from collections.abc import Sequence")
print("from typing import Any, Literal\n")
print("from ._kiln import Dim, Value\n")
print("__all__: list[str]\n")
print("\n".join(functions))
