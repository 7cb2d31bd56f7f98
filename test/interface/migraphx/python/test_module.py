"""Programs made operator by operator, as scripts for MIGraphX make them."""

import array
import concurrent.futures
import contextlib
import io
import math
import unittest

import migraphx
import numpy as np

F = migraphx.shape(type="float", lens=[3, 3])


def buffer(data, lens):
    return memoryview(array.array("f", data).tobytes()).cast("f", lens)


def argument(lens, data):
    return migraphx.create_argument(migraphx.shape(type="float_type", lens=lens), data)


def run(p, params={}, target="ref"):
    p.compile(migraphx.get_target(target))
    return p.run(params)[-1]


class ModuleTest(unittest.TestCase):
    def test_literals(self):
        for make in (lambda v: buffer([v] * 9, (3, 3)), lambda v: np.full((3, 3), v, "float32"), lambda v: migraphx.fill_argument(F, v)):
            p = migraphx.program()
            m = p.get_main_module()
            x, y = m.add_literal(make(1.0)), m.add_literal(make(2.0))
            m.add_return([m.add_instruction(migraphx.op("add"), [x, y])])
            self.assertEqual(run(p).tolist(), [3.0] * 9)

    def test_if(self):
        cond_shape = migraphx.shape(type="bool", lens=[1], strides=[0])
        params = {"x": migraphx.generate_argument(F, 1), "y": migraphx.generate_argument(F, 2)}
        for cond, expected in ((True, "x"), (False, "y")):
            p = migraphx.program()
            m = p.get_main_module()
            c, x, y = m.add_parameter("cond", cond_shape), m.add_parameter("x", F), m.add_parameter("y", F)
            bodies = []
            for name, value in (("then", x), ("else", y)):
                body = p.create_module(name)
                body.add_return([body.add_instruction(migraphx.op("identity"), [value])])
                bodies.append(body)
            i = m.add_instruction(migraphx.op("if"), [c], bodies)
            m.add_return([m.add_instruction(migraphx.op("get_tuple_elem", **{"index": 0}), [i])])
            params["cond"] = migraphx.fill_argument(cond_shape, cond)
            self.assertEqual(run(p, params), params[expected])

    def test_instructions(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(lens=[4, 4, 64], type="half_type"))
        y = m.add_instruction(migraphx.op("reshape", dims=[16, 64]), [x])
        self.assertEqual((y.shape().lens(), y.shape().strides(), y.shape().type_string()), ([16, 64], [64, 1], "half_type"))
        self.assertEqual((y.op().name(), y.name(), x.name()), ("reshape", "reshape", "@param"))
        self.assertEqual(y.op().values()["dims"], [16, 64])
        self.assertEqual((y.inputs(), x.outputs(), y.outputs()), ([x], [y], []))
        self.assertEqual(len({x, y, y.inputs()[0]}), 2)
        lit = m.add_literal(np.array([1, 2], np.int64))
        self.assertEqual(lit.get_literal().tolist(), [1, 2])
        with self.assertRaises(RuntimeError):
            y.get_literal()
        m.add_return([y])
        m.replace_return([lit])
        self.assertEqual([i.name() for i in m], ["@param", "reshape", "@literal", "@return"])
        self.assertIn("reshape", repr(m))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            m.print()
            p.print()
        self.assertEqual(out.getvalue().count("reshape"), 2)
        i = next(iter(migraphx.program().get_main_module()), None)
        self.assertIsNone(i)

    def test_instructions_keep_their_program(self):
        m = migraphx.program().get_main_module()
        x = m.add_parameter("x", F)
        del m
        self.assertEqual(x.shape(), F)

    def test_attributes_of_any_kind(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3, 4]))
        for axes in ([1, 2], (1, 2), np.array([1, 2]), [np.int32(1), np.int64(2)]):
            y = m.add_instruction(migraphx.op("reduce_mean", axes=axes), [x])
            self.assertEqual(y.shape().lens(), [2, 1, 1])
        self.assertEqual(migraphx.op("leaky_relu", alpha=np.float32(0.25)).values()["alpha"], 0.25)
        self.assertEqual(migraphx.op("softmax", axis=np.int8(-1)), migraphx.op("softmax", axis=-1))
        self.assertEqual(m.add_instruction(migraphx.op("softmax", axis=np.uint16(1)), [x]).shape().lens(), [2, 3, 4])
        to = migraphx.op("convert", target_type=migraphx.shape.type_t.int64_type)
        self.assertEqual(m.add_instruction(to, [x]).shape().type_string(), "int64_type")
        with self.assertRaisesRegex(ValueError, "object"):
            migraphx.op("softmax", axis=object())
        own = []
        own.append(own)
        deep = {}
        deep["deep"] = deep
        for values, text in (
            ({"axes": own}, "'axes' of 'reduce_mean': values within another: expected 32, found more"),
            ({"axes": deep}, "'axes' of 'reduce_mean': values within another"),
            ({"axes": [2**64]}, "'axes' of 'reduce_mean': whole numbers have 64 bits: found 18446744073709551616"),
            ({"axes": [-(2**63) - 1]}, "64 bits: found -9223372036854775809"),
            ({"axes": {1: 2}}, "'axes' of 'reduce_mean': names are words: found 1"),
            ({"axes": "\udc00"}, "'axes' of 'reduce_mean': words are Unicode"),
            ({"axes": [1, 1j]}, "'axes' of 'reduce_mean': expected a bool, number, word.*found 1j"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                migraphx.op("reduce_mean", **values)
        with self.assertRaisesRegex(ValueError, "'dims' of 'tile'"):
            migraphx.macro("tile", dims=own)
        for op in (
            migraphx.op("reduce_mean", axes=["a"]),
            migraphx.op("allocate", shape={"type": "float_type", "lens": [1, "a"]}),
            migraphx.op("allocate", shape={"type": "float_type", "lens": [-1]}),
        ):
            with self.assertRaisesRegex(ValueError, "whole numbers.*found ('a'|\"a\"|-1)"):
                m.add_instruction(op, [x] if op.name() == "reduce_mean" else [])
        with self.assertRaisesRegex(ValueError, "no attribute 'axi'"):
            migraphx.op("softmax", axi=1)
        with self.assertRaisesRegex(ValueError, "nearest is 'softmax'"):
            migraphx.op("softmx")

    def test_pooling_modes(self):
        x = argument([1, 1, 2, 2], [1, 2, 3, 5])
        for mode, expected in ((migraphx.op.pooling_mode.max, 5), (migraphx.op.pooling_mode.average, 2.75), ("max", 5)):
            p = migraphx.program()
            m = p.get_main_module()
            op = migraphx.op("pooling", mode=mode, lengths=[2, 2], stride=[1, 1], padding=[0, 0])
            m.add_return([m.add_instruction(op, [m.add_literal(x)])])
            self.assertEqual(run(p).tolist(), [expected])
        self.assertEqual(int(migraphx.op.rnn_direction.bidirectional), 2)

    def test_macros(self):
        a, b = argument([2, 3], [1, 2, 3, 4, 5, 6]), argument([3, 2], [7, 8, 9, 10, 11, 12])
        at = argument([3, 2], [1, 4, 2, 5, 3, 6])
        image = argument([1, 1, 3, 3], range(1, 10))
        norm = [argument([1, 2, 3], range(1, 7)), *(argument([2], v) for v in ([1, 1], [0, 0], [2, 5], [1, 1]))]
        product = [58, 64, 139, 154]
        for macro, args, expected in (
            (migraphx.macro("gemm"), [a, b], product),
            (migraphx.macro("gemm", transA=True, alpha=2), [at, b], [2 * v for v in product]),
            (migraphx.macro("einsum", equation="ij,jk->ik"), [a, b], product),
            (migraphx.macro("einsum", equation="ii->"), [argument([2, 2], [1, 0, 0, 2])], [3]),
            (migraphx.macro("batchnorm"), norm, [v / math.sqrt(1 + 1e-5) for v in (-1, 0, 1, -1, 0, 1)]),
            (migraphx.macro("convolution"), [image, argument([1, 1, 2, 2], [1, 0, 0, 1])], [6, 8, 12, 14]),
            (migraphx.macro("convolution", paddings=[1, 1]), [image, argument([1, 1, 3, 3], [1] * 9)], [12, 21, 16, 27, 45, 33, 24, 39, 28]),
            (migraphx.macro("clip"), [a, argument([1], [2]), argument([1], [4])], [2, 2, 3, 4, 4, 4]),
            (migraphx.macro("tile", repeats=[1, 2]), [argument([2, 1], [1, 2])], [1, 1, 2, 2]),
            (migraphx.macro("add"), [a, argument([3], [10, 20, 30])], [11, 22, 33, 14, 25, 36]),
            (migraphx.macro("gelu_erf"), [argument([2], [0, 100])], [0, 100]),
            (migraphx.macro("gelu_tanh", fast=True), [argument([2], [0, 100])], [0, 100]),
            (migraphx.macro("gelu_quick"), [argument([2], [0, 100])], [0, 100]),
            (migraphx.macro("celu"), [argument([2], [0, 3])], [0, 3]),
            (migraphx.macro("layer_norm", epsilon=0), [argument([1, 2], [1, 3]), argument([2], [1, 2]), argument([2], [0, 1])], [-1, 3]),
        ):
            p = migraphx.program()
            m = p.get_main_module()
            m.add_return([m.add_macro(macro, [m.add_literal(x) for x in args])[-1]])
            np.testing.assert_allclose(run(p).tolist(), expected, rtol=1e-5, err_msg=macro.name())
        gemm = migraphx.macro("gemm", alpha=2.0, transB=True)
        self.assertEqual((gemm.name(), gemm.options()), ("gemm", {"alpha": 2.0, "transB": True}))
        self.assertEqual(migraphx.macro("gemm").options(), {})
        p = migraphx.program()
        m = p.get_main_module()
        x, y = m.add_literal(a), m.add_literal(b)
        last = m.add_macro(migraphx.macro("gemm"), [x, y])
        first = m.insert_macro(last[0], migraphx.macro("dot"), [x, y])
        self.assertEqual([i.name() for i in m], ["@literal", "@literal", "dot", "gemm"])
        m.add_return([first[-1]])
        self.assertEqual(run(p).tolist(), product)
        with self.assertRaisesRegex(ValueError, "gemm.*found 'gem'"):
            m.add_macro(migraphx.macro("gem"), [])

    def test_another_programs_instructions(self):
        m = migraphx.program().get_main_module()
        x = migraphx.program().get_main_module().add_parameter("x", F)
        with self.assertRaisesRegex(ValueError, "another program"):
            m.add_instruction(migraphx.op("relu"), [x])

    def test_returns(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", F)
        m.replace_return([x])
        y = m.add_instruction(migraphx.op("neg"), [x])
        with self.assertRaisesRegex(ValueError, "'main' has one return"):
            m.add_return([y])
        m.replace_return([y])
        self.assertEqual([i.name() for i in m], ["@param", "neg", "@return"])
        migraphx.quantize_fp16(p)
        with self.assertRaisesRegex(ValueError, "is stale"):
            m.replace_return([y])

    def test_changes_from_many_threads(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", F)
        one = np.ones((3, 3), np.float32)

        def work(_):
            for _ in range(20):
                m.add_instruction(migraphx.op("add"), [x, m.add_literal(one)])
                self.assertIn("main:@0", repr(m))
                self.assertEqual(p.run({"x": one})[0].get_shape(), F)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        self.assertEqual(len(list(m)), 1 + 4 * 20 * 2)

    def test_to_py(self):
        p = migraphx.program()
        m = p.get_main_module()
        x = m.add_parameter("x", migraphx.shape(type="float", dyn_dims=[migraphx.shape.dynamic_dimension(1, 8), migraphx.shape.dynamic_dimension(3, 3)]))
        y = m.add_instruction(migraphx.op("relu"), [x])
        m.add_return([m.add_instruction(migraphx.op("transpose", permutation=[1, 0]), [y]), m.add_literal(np.ones(2, np.float32))])
        macro = migraphx.program()
        m = macro.get_main_module()
        a = m.add_parameter("a", F)
        m.add_return(m.add_macro(migraphx.macro("gemm"), [a, a]))
        digits = migraphx.parse_onnx("examples/models/digits/model.onnx")
        for each, through in ((p, "add_instruction"), (macro, "load_buffer"), (digits, "load_buffer")):
            code = each.to_py()
            self.assertIn(through, code)
            scope = {}
            exec(code, scope)
            self.assertEqual(scope["p"], each)


if __name__ == "__main__":
    unittest.main()
