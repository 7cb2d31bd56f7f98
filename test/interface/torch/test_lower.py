"""Graphs of PyTorch's operators as programs: names, constants, what is refused, and which ops they become."""

import collections
import operator
import sys
import unittest

try:
    import torch
except ImportError as why:
    print(f"SKIPPED: {why}: nothing of PyTorch's is tested", file=sys.stderr)
    sys.exit(77)

import kiln
from aten_cases import numbers, run, without_data
from kiln.torch.lower import LoweringError, lower, supports
from torch.fx import Graph, GraphModule

aten = torch.ops.aten


class Writer:
    """Writes a graph call by call, and runs each to know what it makes."""

    def __init__(self):
        self.graph, self.values, self.root = Graph(), {}, torch.nn.Module()

    def input(self, value, name=None):
        return self._known(self.graph.placeholder(name or f"x{len(self.values)}"), value)

    def attribute(self, name, value):
        setattr(self.root, name, torch.nn.Parameter(value) if value.is_floating_point() else value)
        return self._known(self.graph.get_attr(name), value)

    def __call__(self, op, *args, **kwargs):
        given = torch.fx.node.map_arg((args, kwargs), self.values.__getitem__)
        return self._known(self.graph.call_function(op, args, kwargs), op(*given[0], **given[1]))

    def _known(self, node, value):
        node.meta["val"] = torch.utils._pytree.tree_map(without_data, value)
        self.values[node] = value
        return node

    def finish(self, *outputs):
        self.graph.output(outputs)
        return GraphModule(self.root, self.graph)


def kernels_of(graph_module):
    """The number of steps of each kernel."""
    report = kiln.compile(lower(graph_module).program).report
    return collections.Counter(step["kernel"].split()[0].split("<")[0] for step in report["steps"])


class LowerTest(unittest.TestCase):
    def test_names_and_results(self):
        w = Writer()
        x, y = w.input(numbers(2, 3), "x"), w.input(numbers(2, 3, seed=1), "y")
        total = w(aten.add.Tensor, x, y)
        lowered = lower(w.finish(total, x, None, [3, total]), names={"y": "other"})
        self.assertEqual(lowered.inputs, ("x", "other"))
        self.assertEqual([p.name for p in lowered.program.inputs], ["x", "other"])
        self.assertEqual(lowered.outputs, ("output_0", "output_1", (None,), (3,), "output_4"))
        made = kiln.compile(lowered.program)(numbers(2, 3), numbers(2, 3, seed=1))
        for name, wanted in (("output_0", w.values[total]), ("output_1", numbers(2, 3)), ("output_4", w.values[total])):
            self.assertTrue(torch.equal(torch.from_dlpack(made[name]), wanted))

    def test_parameters_are_constants(self):
        w = Writer()
        x, p = w.input(numbers(2, 3)), w.attribute("weight", numbers(3, 3).t())
        flags = w.attribute("flags", torch.tensor([True, False, True]))
        y = w(aten.where.self, flags, w(aten.mm.default, x, p), x)
        graph_module = w.finish(y)
        self.assertEqual(len(lower(graph_module).inputs), 1)
        (found,) = run(graph_module, [numbers(2, 3)])
        torch.testing.assert_close(found, w.values[y], rtol=1e-5, atol=1e-6)

    def test_results_that_nobody_reads_are_not_made(self):
        w = Writer()
        both = w(aten.native_layer_norm.default, w.input(numbers(2, 3)), [3], None, None, 1e-5)
        first = w(operator.getitem, both, 0)
        w(operator.getitem, both, 1)
        (found,) = run(w.finish(first), [numbers(2, 3)])
        torch.testing.assert_close(found, w.values[first], rtol=1e-5, atol=1e-6)

    def test_refusals_name_the_node_and_the_reason(self):
        w = Writer()
        x = w.input(numbers(3))
        random = w(aten.bernoulli.default, w(aten.sigmoid.default, x))
        self.assertIn("no lowering", supports(random))
        with self.assertRaisesRegex(LoweringError, r"bernoulli_default \(aten::bernoulli\): kiln has no lowering of the operator"):
            lower(w.finish(random))
        w = Writer()
        pooled = w(aten.adaptive_max_pool2d.default, w.input(numbers(1, 2, 4, 4)), [2, 2])
        graph_module = w.finish(w(operator.getitem, pooled, 1))
        self.assertIn("beyond the first 1", supports(pooled))
        with self.assertRaisesRegex(LoweringError, "does not make this result"):
            lower(graph_module)
        w = Writer()
        fft = w(aten.view_as_complex.default, w.input(numbers(3, 2)))
        self.assertIn("no lowering", supports(fft))
        w = Writer()
        converted = w(aten._to_copy.default, w.input(numbers(3)), dtype=torch.complex64)
        self.assertIn("complex64", supports(converted))
        w = Writer()
        taken = w(aten.slice.Tensor, w.input(torch.zeros(3).to_sparse().to_dense().to(torch.complex64)), 0, 0, 2)
        self.assertIn("complex64", supports(taken))

    def test_faults_of_the_builder_name_the_node(self):
        w = Writer()
        x = w.input(numbers(2, 3))
        y = w(aten.view.default, x, [3, 2])
        y.args = (x, [4, 2])
        with self.assertRaisesRegex(LoweringError, r"view_default \(aten::view\): .*reshape"):
            lower(w.finish(y))

    def test_placeholders_say_what_they_are(self):
        graph = Graph()
        graph.output((graph.placeholder("x"),))
        with self.assertRaisesRegex(LoweringError, "found no tensor in its meta"):
            lower(GraphModule({}, graph))
        w = Writer()
        x = w.input(torch.zeros(2, dtype=torch.complex64))
        with self.assertRaisesRegex(LoweringError, "an input has the dtype torch.complex64"):
            lower(w.finish(x))


class FormTest(unittest.TestCase):
    """The forms that fusion knows are made: attention, and epilogues of products and convolutions."""

    def attention(self, lead, mask_lens, split=None):
        """softmax(q k^T / 2 + mask) v as torch.matmul is decomposed; `split` are the extents that the scores have beside
        their mask, as those of windows."""
        w = Writer()
        q, k, v = (w.input(numbers(*lead, 5, 8, seed=s)) for s in (1, 2, 3))
        mask = w.input(numbers(*mask_lens, low=-2))
        n = 1
        for extent in lead:
            n *= extent

        def product(a, b, rows, inner, columns):
            a, b = w(aten.expand.default, a, [*lead, rows, inner]), w(aten.expand.default, b, [*lead, inner, columns])
            flat = w(aten.bmm.default, w(aten.reshape.default, a, [n, rows, inner]), w(aten.reshape.default, b, [n, inner, columns]))
            return w(aten.view.default, flat, [*lead, rows, columns])

        keys = w(aten.transpose.int, k, -1, -2)
        scores = w(aten.mul.Tensor, product(q, keys, 5, 8, 5), 0.5)
        if split is None:
            scores = w(aten.add.Tensor, scores, mask)
        else:
            scores = w(aten.add.Tensor, w(aten.view.default, scores, [*split, 5, 5]), mask)
            scores = w(aten.view.default, scores, [*lead, 5, 5])
        made = product(w(aten._softmax.default, scores, -1, False), v, 5, 5, 8)
        graph_module = w.finish(made)
        (found,) = run(graph_module, [x for n, x in w.values.items() if n.op == "placeholder"])
        torch.testing.assert_close(found, w.values[made], rtol=1e-5, atol=1e-5)
        return kernels_of(graph_module)["attention"]

    def test_attention(self):
        self.assertEqual(self.attention((2, 4), (2, 1, 5, 5)), 1)
        self.assertEqual(self.attention((2, 4), (5,)), 1)
        self.assertEqual(self.attention((3, 2, 4), (1, 1, 4, 5, 5)), 1)
        self.assertEqual(self.attention((6, 4), (1, 3, 1, 5, 5), split=(2, 3, 4)), 1)
        self.assertEqual(self.attention((6, 4), (4, 5, 5), split=(2, 3, 4)), 1)

    def test_numbers_beside_reshaped_values(self):
        for op, number in ((aten.mul.Tensor, 0.5), (aten.div.Tensor, torch.tensor(4.0)), (aten.mul.Tensor, torch.tensor(2.0))):
            w = Writer()
            x = w(aten.view.default, w.input(numbers(6, 5)), [2, 3, 5])
            inputs = [numbers(6, 5)] + ([number] if isinstance(number, torch.Tensor) else [])
            made = w(op, x, w.input(number) if isinstance(number, torch.Tensor) else number)
            (found,) = run(w.finish(made), inputs)
            self.assertTrue(torch.equal(found, w.values[made]))

    def test_sums_beside_split_extents(self):
        for lens in ((2, 3, 4, 5), (3, 1, 5), (2, 1, 1, 1), (4, 1), (5,), (), (1, 3, 4, 5)):
            w = Writer()
            x, y = w.input(numbers(6, 4, 5)), w.input(numbers(*lens, seed=1))
            total = w(aten.add.Tensor, w(aten.view.default, x, [2, 3, 4, 5]), y)
            (found,) = run(w.finish(w(aten.view.default, total, [6, 4, 5])), [numbers(6, 4, 5), numbers(*lens, seed=1)])
            self.assertTrue(torch.equal(found, w.values[total].reshape(6, 4, 5)))

    def test_epilogues(self):
        w = Writer()
        x = w.input(numbers(1, 4, 8, 8))
        y = w(aten.convolution.default, x, w.attribute("k", numbers(4, 4, 3, 3)), w.attribute("b", numbers(4)), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        n = w(aten.native_batch_norm.default, y, *(w.attribute(f"n{i}", numbers(4, low=0.5, seed=i)) for i in range(4)), False, 0.1, 1e-5)
        y = w(aten.relu.default, w(aten.add.Tensor, w(operator.getitem, n, 0), x))
        y = w(aten.addmm.default, w.attribute("c", numbers(6)), w(aten.reshape.default, w(aten.mean.dim, y, [-1, -2], True), [1, 4]), w(aten.t.default, w.attribute("m", numbers(6, 4))))
        graph_module = w.finish(w(aten.gelu.default, y))
        (found,) = run(graph_module, [numbers(1, 4, 8, 8)])
        torch.testing.assert_close(found, aten.gelu(w.values[y]), rtol=1e-5, atol=1e-4)
        kernels = kernels_of(graph_module)
        self.assertEqual(sum(kernels.values()), 3, kernels)


class DtypeTest(unittest.TestCase):
    def test_numbers_beside_halves_are_single(self):
        w = Writer()
        x = w.input(numbers(4096, dtype=torch.bfloat16, low=0, high=100))
        graph_module = w.finish(w(aten.mul.Scalar, x, 1.001), w(aten.add.Scalar, x, 0.3))
        for found, exact in zip(run(graph_module, [w.values[x]]), (w.values[x].float() * 1.001, w.values[x].float() + 0.3)):
            self.assertTrue(torch.equal(found, exact.bfloat16()))

    def test_promotion_is_pytorchs(self):
        from kiln.torch.types import Kind, promoted

        b = kiln.Builder()
        matrix = {d: b.input(d, d, [2, 2]) for d in ("f32", "f16", "bf16", "i64", "u8", "bool")}
        scalar = b.input("scalar", "f64", [])
        self.assertEqual(promoted(matrix["f16"], matrix["bf16"]), "f32")
        self.assertEqual(promoted(matrix["f16"], scalar), "f16")
        self.assertEqual(promoted(matrix["u8"], 2), "u8")
        self.assertEqual(promoted(matrix["u8"], 2.0), "f32")
        self.assertEqual(promoted(matrix["bool"], 2), "i64")
        self.assertEqual(promoted(matrix["i64"], matrix["u8"], kind=Kind.INT_TO_FLOAT), "f32")


class SymbolTest(unittest.TestCase):
    def test_extents_that_are_symbols(self):
        n = kiln.symbol("n", 1, 64)
        w = Writer()
        x = w.input(numbers(4, 6))
        x.meta["dims"] = [n, 6]
        y = w(aten.view.default, x, [4, 2, 3])
        y.args = (x, [n, 2, 3])
        parts = w(aten.split.Tensor, y, 1, 1)
        total = w(aten.add.Tensor, w(operator.getitem, parts, 0), w(operator.getitem, parts, 1))
        full = w(aten.full.default, [4, 1, 1], 2.0)
        full.args = ([n, 1, 1], 2.0)
        made = w(aten.cat.default, [total, w(aten.expand.default, full, [-1, 1, 3])], 1)
        lowered = lower(w.finish(made))
        exe = kiln.compile(lowered.program)
        for count in (1, 4, 9):
            given = numbers(count, 6)
            parts = given.view(count, 2, 3)
            wanted = torch.cat([parts[:, :1] + parts[:, 1:], torch.full((count, 1, 3), 2.0)], 1)
            self.assertTrue(torch.equal(torch.from_dlpack(exe(given)), wanted))


if __name__ == "__main__":
    unittest.main()
