"""The package is what it says, its stubs name what there is, and it leaves kiln and an installed migraphx alone."""

import ast
import inspect
import pathlib
import unittest

import migraphx
from migraphx import _migraphx

FOLDER = pathlib.Path(migraphx.__file__).parent
# of every class, by pybind11, Python or its enums
COMMON = {"__init__", "__module__", "__doc__", "__repr__", "__str__", "__weakref__", "__hash__", "__eq__", "__dict__"}
ENUM = {"__entries", "__getstate__", "__setstate__", "__int__", "__index__", "__ne__", "name", "value", "__members__"}


def names_in(body):
    out = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            out[node.target.id] = node
    return out


class PackageTest(unittest.TestCase):
    def compare(self, name, node, thing):
        stub = names_in(node.body)
        members = {m for m in vars(thing) if m not in COMMON and not m.startswith("_pybind11")}
        self.assertEqual(set(stub) - COMMON - ENUM, members - ENUM, name)
        for inner, inner_node in stub.items():
            if isinstance(inner_node, ast.ClassDef):
                self.compare(inner, inner_node, getattr(thing, inner))

    def test_stubs(self):
        stub = names_in(ast.parse((FOLDER / "_migraphx.pyi").read_text()).body)
        stub = {name: node for name, node in stub.items() if not name.startswith("_") or name == "__version__"}
        self.assertEqual(set(stub), {n for n in vars(_migraphx) if not n.startswith("__")} | {"__version__"})
        self.assertEqual(set(stub), set(migraphx.__all__))
        for name, node in stub.items():
            if isinstance(node, ast.ClassDef) and name != "Error":
                self.compare(name, node, getattr(_migraphx, name))

    def test_it_says_what_it_is(self):
        self.assertIn("kiln in role of migraphx", migraphx.__doc__)
        self.assertRegex(migraphx.__version__, r"^\d+\.\d+\.\d+$")
        self.assertEqual(migraphx.shape.__module__, "migraphx")
        self.assertTrue((FOLDER / "py.typed").exists())
        for thing in (migraphx.parse_onnx, migraphx.program.run, migraphx.macro, migraphx.gpu_sync):
            self.assertTrue(inspect.getdoc(thing))

    def test_a_folder_of_its_own(self):
        self.assertEqual({p.name for p in FOLDER.parent.iterdir()}, {"migraphx", "onnx_migraphx"})


if __name__ == "__main__":
    unittest.main()
