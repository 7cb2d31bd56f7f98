"""The stubs name what there is, and no more."""

import ast
import inspect
import pathlib
import unittest

import kiln
from kiln import _kiln, ops

FOLDER = pathlib.Path(kiln.__file__).parent
# of every class, by pybind11 or Python itself
COMMON = {"__init__", "__module__", "__doc__", "__repr__", "__str__", "__weakref__", "__hash__", "__eq__", "__dict__"}


def names_in(body):
    out = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            out[node.target.id] = node
    return out


class StubTest(unittest.TestCase):
    def test_compiled_module(self):
        stub = names_in(ast.parse((FOLDER / "_kiln.pyi").read_text()).body)
        there = {n for n in vars(_kiln) if not n.startswith("__")} | {"__version__"}
        self.assertEqual(set(stub), there)
        for name, node in stub.items():
            thing = getattr(_kiln, name)
            if not inspect.isclass(thing) or issubclass(thing, Exception):
                continue
            members = {m for m in vars(thing) if m not in COMMON and not m.startswith("_pybind11")}
            inner = {m for m in members if m.startswith("_") and not m.startswith("__") and not m.startswith("_repr")}
            self.assertEqual(set(names_in(node.body)) - COMMON, members - inner, name)

    def test_ops(self):
        stub = names_in(ast.parse((FOLDER / "ops.pyi").read_text()).body)
        self.assertEqual(set(stub) - {"__all__"}, set(ops.__all__))

    def test_everything_is_described(self):
        for name in kiln.__all__:
            if name != "__version__":
                self.assertTrue(inspect.getdoc(getattr(kiln, name)), name)


if __name__ == "__main__":
    unittest.main()
