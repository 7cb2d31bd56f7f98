"""The stubs name what there is, and no more."""

import ast
import importlib.util
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
        self.compare(_kiln, "_kiln.pyi", {"__version__"})

    @unittest.skipIf(importlib.util.find_spec("kiln._genai") is None, "built without language models")
    def test_compiled_module_of_language_models(self):
        self.compare(importlib.import_module("kiln._genai"), "_genai.pyi", set())

    def compare(self, module, file, more):
        stub = names_in(ast.parse((FOLDER / file).read_text()).body)
        there = {n for n in vars(module) if not n.startswith("__")} | more
        self.assertEqual(set(stub), there)
        for name, node in stub.items():
            thing = getattr(module, name)
            if not inspect.isclass(thing) or issubclass(thing, Exception):
                continue
            members = {m for m in vars(thing) if m not in COMMON and "_pybind11" not in m}
            inner = {m for m in members if m.startswith("_") and not m.startswith("__") and not m.startswith("_repr")}
            self.assertEqual(set(names_in(node.body)) - COMMON, members - inner, name)

    def test_ops(self):
        stub = names_in(ast.parse((FOLDER / "ops.pyi").read_text()).body)
        self.assertEqual(set(stub) - {"__all__"}, set(ops.__all__))

    def test_everything_is_described(self):
        for name in kiln.__all__:
            if name != "__version__":
                self.assertTrue(inspect.getdoc(getattr(kiln, name)), name)

    @unittest.skipIf(importlib.util.find_spec("kiln._genai") is None, "built without language models")
    def test_everything_of_language_models_is_described(self):
        genai = importlib.import_module("kiln.genai")
        for name in genai.__all__:
            thing = getattr(genai, name)
            self.assertTrue(inspect.getdoc(thing), name)
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                if not member.startswith("_") and not issubclass(thing, Exception):
                    self.assertTrue(inspect.getdoc(value), f"{name}.{member}")


if __name__ == "__main__":
    unittest.main()
