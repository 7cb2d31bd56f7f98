"""Inputs and outputs of dataclasses and dicts, packed sequences, constants that a run mutates."""

import dataclasses
import itertools
import unittest
from collections import OrderedDict

import kiln.torch
import torch
from torch import nn

from test_compile import Case


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    rest: object = None


@dataclasses.dataclass
class Named(OrderedDict):
    """What holds its fields as items, too."""

    logits: torch.Tensor = None
    hidden: torch.Tensor = None

    def __post_init__(self):
        for f in dataclasses.fields(self):
            self[f.name] = getattr(self, f.name)


class Items(dict):
    pass


class StructuresTest(Case):
    def test_dataclasses(self):
        c = kiln.torch.compile(lambda x: Pair(x + 1, [x * 2, Pair(x.relu())]), torch.rand(3))
        x = torch.randn(3)
        made = c(x)
        self.assertIsInstance(made, Pair)
        self.assertIsInstance(made.rest[1], Pair)
        self.assertIsNone(made.rest[1].rest)
        self.assert_equal([made.first, made.rest[0], made.rest[1].first], [x + 1, x * 2, x.relu()])

    def test_inputs_of_dataclasses(self):
        c = kiln.torch.compile(lambda p, scale: {"sum": p.first + p.rest["y"] * scale}, (Pair(torch.rand(3), {"y": torch.rand(3)}), 2.0))
        x, y = torch.randn(3), torch.randn(3)
        self.assert_equal(c(Pair(x, {"y": y}), 2.0)["sum"], x + y * 2)

    def test_dicts_of_other_types(self):
        c = kiln.torch.compile(lambda x: (Named(x + 1, x * 2), Items(a=x - 1)), torch.rand(3))
        x = torch.randn(3)
        named, items = c(x)
        self.assertEqual((type(named), type(items)), (Named, Items))
        self.assert_equal([named.logits, named["hidden"], items["a"]], [x + 1, x * 2, x - 1])

    def test_packed_sequences(self):
        rnn = nn.utils.rnn
        lists = ([5, 3, 2], [4, 4, 1], [3, 3, 3])
        for kind, lengths, both, layers in itertools.product((nn.LSTM, nn.GRU, nn.RNN), lists, (False, True), (1, 2)):
            with self.subTest(kind=kind.__name__, lengths=lengths, both=both, layers=layers):
                m = kind(6, 8, bidirectional=both, num_layers=layers)

                def run(x):
                    made, last = m(rnn.pack_padded_sequence(x, lengths))
                    padded, sizes = rnn.pad_packed_sequence(made, padding_value=-1.5)
                    return padded, sizes, last

                x = torch.rand(max(lengths), 3, 6)
                c = kiln.torch.compile(run, torch.rand(max(lengths), 3, 6))
                with torch.no_grad():
                    self.assert_equal(c(x), run(x), 1e-5)
                self.assertEqual([p.by for p in c.report.parts], ["kiln"])

    def test_packed_in_any_order(self):
        rnn, m = nn.utils.rnn, nn.LSTM(6, 8, batch_first=True)

        def run(x):
            packed = rnn.pack_padded_sequence(x, [2, 5, 3], batch_first=True, enforce_sorted=False)
            return rnn.pad_packed_sequence(m(packed)[0], batch_first=True, total_length=7)[0]

        x = torch.rand(3, 5, 6)
        with torch.no_grad():
            self.assert_equal(kiln.torch.compile(run, torch.rand(3, 5, 6))(x), run(x), 1e-5)

    def test_lengths_of_an_input(self):
        def run(x, lengths):
            return nn.utils.rnn.pack_padded_sequence(x, lengths).data * 2

        with self.assertRaisesRegex(kiln.torch.TraceError, "lengths of packed sequences that no input decides"):
            kiln.torch.compile(run, (torch.rand(5, 3, 6), torch.tensor([5, 3, 2])))

    def test_masks_that_are_constants(self):
        mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
        m = nn.MultiheadAttention(16, 4)
        x = torch.rand(5, 2, 16)
        for options in ({"attn_mask": mask}, {"attn_mask": mask, "need_weights": False}, {"key_padding_mask": mask[:2]}):
            with self.subTest(options=list(options)):
                c = kiln.torch.compile(lambda x: m(x, x, x, **options)[0], x)
                with torch.no_grad():
                    self.assert_equal(c(x), m(x, x, x, **options)[0], 1e-5)
                self.assertEqual([p.by for p in c.report.parts], ["kiln"])

    def test_a_view_of_a_constant_that_is_mutated(self):
        held = torch.arange(6.0).reshape(2, 3)

        def run(x):
            own = torch.zeros_like(held)
            row = own[0]
            own.add_(held)
            return x + row

        with self.assertRaisesRegex(kiln.torch.TraceError, "of a constant that a view shows"):
            kiln.torch.compile(run, torch.rand(3))

    def test_numbers_beside_bits(self):
        x = torch.tensor([1, 6, 3])
        for f in (lambda x: (x | 4) + 1, lambda x: (x ^ 5) + 1, lambda x: (x & 3) + 1, lambda x: (x > 2) | True):
            self.assert_equal(kiln.torch.compile(f, x, min_size=1)(x), f(x))

    def test_one_hot(self):
        x = torch.tensor([[1, 0], [4, 2]])
        c = kiln.torch.compile(lambda x: nn.functional.one_hot(x, 5) * 2, x, min_size=1)
        self.assert_equal(c(x), nn.functional.one_hot(x, 5) * 2)
        self.assertEqual([p.by for p in c.report.parts], ["kiln"])


if __name__ == "__main__":
    unittest.main()
