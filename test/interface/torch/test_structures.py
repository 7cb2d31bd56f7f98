"""Inputs and outputs of dataclasses and dicts, packed sequences, constants that a run mutates."""

import dataclasses
import itertools
import unittest
from collections import OrderedDict, defaultdict

import kiln
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


@dataclasses.dataclass
class Doubled:
    """Whose constructor computes."""

    x: torch.Tensor
    scale: dataclasses.InitVar[float]
    total: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self, scale):
        self.x = self.x * 2
        self.total = self.x.sum() * scale
        self.shifted = self.x + 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: torch.Tensor

    def __post_init__(self):
        object.__setattr__(self, "x", self.x * 2)


class Counted(dict):
    """Whose constructor takes something else, and whose items are more than what was set."""

    def __init__(self, count, **items):
        super().__init__(items)
        self.count = count

    def __setitem__(self, key, value):
        super().__setitem__(key, value * self.count)


@dataclasses.dataclass
class Failing(Exception):
    x: torch.Tensor


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

    def test_constructors_run_once(self):
        def run(x):
            return Doubled(x, 3.0), Frozen(x)

        x = torch.randn(3)
        c = kiln.torch.compile(run, torch.rand(3))
        for made in (c(x), c(x)):
            self.assertEqual(list(map(type, made)), [Doubled, Frozen])
            self.assert_equal([made[0].x, made[0].total, made[0].shifted, made[1].x], [x * 2, x.sum() * 6, x * 2 + 1, x * 2])
        given = Doubled(x, 3.0)
        c = kiln.torch.compile(lambda d: d.x + d.total * d.shifted, (Doubled(torch.rand(3), 1.0),))
        self.assert_equal(c(given), given.x + given.total * given.shifted)

    def test_items_that_are_no_attributes(self):
        def run(x):
            made = Named(x + 1, x * 2)
            made.move_to_end("logits")
            made["more"] = x - 1
            return made

        x = torch.randn(3)
        made = kiln.torch.compile(run, torch.rand(3))(x)
        self.assertEqual(list(made), ["hidden", "logits", "more"])
        self.assertIs(made.logits, made["logits"])
        self.assert_equal(list(made.values()), [x * 2, x + 1, x - 1])

    def test_dicts_with_constructors_of_their_own(self):
        def run(x):
            lists = defaultdict(list)
            lists["a"].append(x + 1)
            return lists, Counted(3, a=x * 2)

        x = torch.randn(3)
        lists, counted = kiln.torch.compile(run, torch.rand(3))(x)
        self.assertEqual((type(lists), lists["b"], type(counted), counted.count), (defaultdict, [], Counted, 3))
        self.assert_equal([lists["a"][0], counted["a"]], [x + 1, x * 2])

    def test_types_that_cannot_be_made_anew(self):
        with self.assertRaisesRegex(kiln.ArgumentError, "fields and items alone: found Failing"):
            kiln.torch.compile(lambda x: Failing(x + 1), torch.rand(3))(torch.rand(3))

    def test_constants_keep_their_dtype_in_place(self):
        dtypes = ((torch.float16, torch.float32), (torch.float32, torch.float64), (torch.float32, torch.bfloat16))
        for (own, other), is_held in itertools.product(dtypes, (False, True)):
            with self.subTest(own=own, other=other, is_held=is_held):
                held, thirds = torch.full((4,), 0.1, dtype=own), torch.arange(4, dtype=other) / 3

                def run(x):
                    made = torch.full_like(held, 0.1) if is_held else torch.full((4,), 0.1, dtype=own)
                    made += thirds
                    less = torch.ones_like(made)
                    less.lt_(made)
                    return x, made, made * 3, less

                x = torch.rand(4, dtype=own)
                self.assert_equal(kiln.torch.compile(run, x, min_size=1)(x), run(x), 1e-7)

    def test_views_of_constants_that_nobody_reads_later(self):
        held = torch.ones(3, 3)
        for make in (lambda: torch.zeros(3, 3), lambda: torch.zeros_like(held)):

            def run(x):
                made = make()
                first = made[0].sum()
                made.add_(held)
                return x + first + made + made[1]

            x = torch.rand(3, 3)
            self.assert_equal(kiln.torch.compile(run, x)(x), run(x))

    def test_a_constant_whose_view_is_mutated(self):
        held = torch.ones(3, 3)

        def run(x):
            made = torch.zeros_like(held)
            made[0].add_(1)
            return x + made

        with self.assertRaisesRegex(kiln.torch.TraceError, "add_.* of a constant that a view shows"):
            kiln.torch.compile(run, torch.rand(3, 3))

    def test_empty_constants(self):
        held = torch.zeros(0, 2)

        def run(x):
            made, other = torch.zeros(0, 3), torch.ones_like(held.t())
            made.add_(1)
            other.mul_(2)
            return torch.cat([x, made, torch.zeros(0, 3)]), other, held + 1

        x = torch.rand(2, 3)
        self.assert_equal(kiln.torch.compile(run, x)(x), run(x))

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
        c = kiln.torch.compile(lambda x: nn.functional.one_hot(x, num_classes=5) * 2, x, min_size=1)
        self.assert_equal(c(x), nn.functional.one_hot(x, 5) * 2)
        self.assertEqual([p.by for p in c.report.parts], ["kiln"])
        self.assert_equal(c(torch.tensor([[5, 0], [4, -1]])).sum(-1), torch.tensor([[0, 2], [2, 0]]))
        for dtype in (torch.float32, torch.int32):
            with self.assertRaisesRegex(RuntimeError, "index tensor"):
                kiln.torch.compile(lambda x: nn.functional.one_hot(x, 5), x.to(dtype), min_size=1)


if __name__ == "__main__":
    unittest.main()
