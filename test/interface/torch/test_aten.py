"""All cases of PyTorch's operators, and that each operator of the table has one."""

import sys
import unittest

try:
    import torch  # noqa: F401
except ImportError as why:
    print(f"SKIPPED: {why}: nothing of PyTorch's is tested", file=sys.stderr)
    sys.exit(77)

import aten_layers
import aten_pointwise
import aten_sequences
import aten_tensors
from aten_cases import exercised
from kiln.torch.aten import table


class WholeTableTest(unittest.TestCase):
    def test_every_operator_has_a_case(self):
        self.assertEqual([n for n in sorted(table) if n.removeprefix("aten::") not in exercised], [])


def load_tests(loader, tests, pattern):
    parts = (aten_pointwise, aten_tensors, aten_layers, aten_sequences)
    suite = unittest.TestSuite(loader.loadTestsFromModule(p) for p in parts)
    suite.addTests(tests)  # the last one: it reads what the others did
    return suite


if __name__ == "__main__":
    unittest.main()
