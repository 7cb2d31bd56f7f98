"""PyTorch's pointwise operators in kiln beside eager ones."""

import math

import torch
from aten_cases import CaseTest, numbers

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8)
ALL = FLOATS + INTEGERS + (torch.bool,)
SPECIAL = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5, 0.5])


class PointwiseTest(CaseTest):
    def test_functions_of_one_tensor(self):
        for name in ("cos", "erf", "exp", "sigmoid", "sin", "tanh", "atan", "sinh", "cosh", "asinh", "expm1", "tan", "exp2", "erfc"):
            for dtype in ALL:
                self.agrees(name, numbers(3, 5, dtype=dtype, low=-1.4, high=1.4))
            self.agrees(name, SPECIAL)
        for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"):
            for dtype in ALL:
                self.agrees(name, numbers(3, 5, dtype=dtype, low=1.0, high=9.0))
            self.agrees(name, SPECIAL)
        for name in ("acos", "asin", "atanh"):
            for dtype in FLOATS:
                self.agrees(name, numbers(7, dtype=dtype, low=-0.9, high=0.9))
        self.agrees("acosh", numbers(7, low=1.1, high=9))
        for name in ("abs", "sign", "sgn", "neg", "square", "positive"):
            for dtype in FLOATS + INTEGERS:
                self.agrees(name, numbers(3, 5, dtype=dtype))
            self.agrees(name, SPECIAL)
        for name in ("ceil", "floor", "round", "trunc", "frac", "fix"):
            for dtype in FLOATS:
                self.agrees(name, numbers(3, 5, dtype=dtype))
            self.agrees(name, torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 7.0]))
        for name in ("ceil", "floor", "round", "trunc"):
            self.agrees(name, numbers(3, 5, dtype=torch.int64))
        self.agrees("absolute", numbers(3))
        self.agrees("round.decimals", numbers(9), decimals=1)
        self.agrees("round.decimals", numbers(9, low=-300, high=300), decimals=-1)

    def test_shapes(self):
        for x in (torch.tensor(2.0), torch.zeros(0, 3), numbers(2, 3, 4).transpose(0, 2), numbers(4, 6)[::2, 1::2]):
            self.agrees("exp", x)
            self.agrees("relu", x)
            self.agrees("add.Tensor", x, x)
        self.agrees("add.Tensor", numbers(2, 1, 4), numbers(3, 1))
        self.agrees("mul.Tensor", numbers(0, 4), numbers(4))
        self.agrees("sub.Tensor", numbers(2, 3), torch.tensor(2.0))

    def test_arithmetic_promotes(self):
        for name in ("add.Tensor", "mul.Tensor", "div.Tensor"):
            for a in ALL:
                for b in ALL:
                    self.agrees(name, numbers(2, 3, dtype=a), numbers(3, dtype=b, low=1, high=4))
                self.agrees(name, numbers(2, 3, dtype=a), torch.tensor(2.5))
                self.agrees(name, torch.tensor(3), numbers(2, 3, dtype=a, low=1))
        for name in ("add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "rsub.Scalar"):
            for dtype in FLOATS + INTEGERS:
                self.agrees(name, numbers(2, 3, dtype=dtype), 2)
                self.agrees(name, numbers(2, 3, dtype=dtype), 0.7)
        for name in ("sub.Tensor", "rsub.Tensor"):
            for dtype in FLOATS + INTEGERS:
                self.agrees(name, numbers(2, 3, dtype=dtype), numbers(2, 3, dtype=dtype, seed=4))
        for name in ("add.Tensor", "sub.Tensor", "rsub.Tensor"):
            self.agrees(name, numbers(2, 3), numbers(2, 3, seed=1), alpha=2.5)
            self.agrees(name, numbers(2, 3, dtype=torch.int64), numbers(2, 3, dtype=torch.int64, seed=1), alpha=3)
        self.agrees("add.Scalar", numbers(2, 3), 2, 3)
        self.agrees("add.Tensor", numbers(5, dtype=torch.bool), numbers(5, dtype=torch.bool, seed=3), alpha=True)
        self.agrees("true_divide.Tensor", numbers(4, dtype=torch.int64), torch.tensor(2))
        self.agrees("true_divide.Scalar", numbers(4), 2)
        self.agrees("mul.Scalar", torch.tensor([200, 100, 7], dtype=torch.uint8), 3)

    def test_quotients_and_remainders(self):
        x = torch.tensor([7.0, -7.0, 7.5, -7.5, 0.0, -0.0, 1.0, 5.0, math.inf, 3.0, -1e-9, 0.6])
        y = torch.tensor([2.0, 2.0, -2.5, -2.5, 3.0, 3.0, 0.0, math.inf, 2.0, math.nan, 1.0, 0.1])
        i, j = torch.tensor([7, -7, 7, -7, 0, 100]), torch.tensor([2, 2, -2, -2, 5, 7])
        for mode in ("floor", "trunc", None):
            for dtype in FLOATS:
                self.agrees("div.Tensor_mode", x[:6].to(dtype), y[:6].to(dtype), rounding_mode=mode)
            self.agrees("div.Tensor_mode", x, y, rounding_mode=mode)
            for dtype in (torch.int64, torch.int32):
                self.agrees("div.Tensor_mode", i.to(dtype), j.to(dtype), rounding_mode=mode)
            self.agrees("div.Scalar_mode", i, -3, rounding_mode=mode)
            self.agrees("div.Scalar_mode", x, 0.7, rounding_mode=mode)
        self.agrees("floor_divide", x, y)
        self.agrees("floor_divide", i, j)
        self.agrees("floor_divide.Scalar", i, 3)
        for name in ("remainder", "fmod"):
            self.agrees(f"{name}.Tensor", x, y)
            self.agrees(f"{name}.Tensor", i, j)
            self.agrees(f"{name}.Tensor", i, y[:6])
            self.agrees(f"{name}.Scalar", x, -2.5)
            self.agrees(f"{name}.Scalar", i, 4)
        self.agrees("remainder.Scalar_Tensor", 7, j)

    def test_powers(self):
        x = numbers(3, 4, low=0.1)
        for e in (0, 1, 2, 3, 0.5, -0.5, -1, 1.7, -2):
            for dtype in FLOATS:
                self.agrees("pow.Tensor_Scalar", x.to(dtype), e)
        self.agrees("pow.Tensor_Scalar", numbers(9), 3)
        self.agrees("pow.Tensor_Scalar", SPECIAL, 2)
        for e in (0, 1, 2, 3, 0.5):
            self.agrees("pow.Tensor_Scalar", numbers(9, dtype=torch.int64, low=1), e)
        self.agrees("pow.Tensor_Tensor", x, numbers(4))
        self.agrees("pow.Tensor_Tensor", numbers(4, dtype=torch.int64), torch.tensor([0, 1, 2, 3]))
        self.agrees("pow.Scalar", 2, numbers(4))
        self.agrees("pow.Scalar", 2.5, torch.tensor([1, 2, 3]))

    def test_of_three_tensors(self):
        a, b, d = numbers(2, 3), numbers(3, seed=1), numbers(2, 1, low=1, seed=2)
        for dtype in FLOATS:
            self.agrees("addcmul", a.to(dtype), b.to(dtype), d.to(dtype), value=0.3)
            self.agrees("addcdiv", a.to(dtype), b.to(dtype), d.to(dtype), value=-2)
        self.agrees("addcmul", a.long(), b.long(), d.long(), value=3)
        self.agrees("lerp.Scalar", a, b, 0.3)
        self.agrees("lerp.Scalar", a, b, 0.8)
        self.agrees("lerp.Tensor", a, b, numbers(2, 3, low=0, high=1))

    def test_of_two_tensors(self):
        x, y = numbers(4, 5), numbers(5, seed=3)
        self.agrees("atan2", x, y)
        self.agrees("atan2", torch.tensor([0.0, 1.0, -1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 0.0, 1.0, -1.0]))
        self.agrees("logaddexp", x, y)
        self.agrees("logaddexp", SPECIAL, SPECIAL)
        self.agrees("xlogy.Tensor", torch.tensor([0.0, 2.0, 0.0, 1.0]), torch.tensor([0.0, 3.0, math.nan, 0.0]))
        self.agrees("xlogy.Scalar_Self", 2, y.abs())
        self.agrees("xlogy.Scalar_Other", y, 2)
        self.agrees("logit", numbers(6, low=0.1, high=0.9))
        self.agrees("logit", numbers(6, low=-0.1, high=1.1), 1e-3)
        self.agrees("heaviside", torch.tensor([-1.0, 0.0, 2.0, math.nan]), torch.tensor(0.5))

    def test_comparisons(self):
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            for dtype in ALL:
                self.agrees(f"{name}.Tensor", numbers(4, 5, dtype=dtype), numbers(5, dtype=dtype, seed=2))
                self.agrees(f"{name}.Scalar", numbers(4, 5, dtype=dtype), 1)
            self.agrees(f"{name}.Tensor", numbers(5, dtype=torch.int64), numbers(5))
            self.agrees(f"{name}.Scalar", numbers(5, dtype=torch.int64), 0.5)
            self.agrees(f"{name}.Tensor", SPECIAL, SPECIAL.flip(0))
            self.agrees(f"{name}.Tensor", SPECIAL, SPECIAL)
        for name in ("maximum", "minimum", "max.other", "min.other", "fmax", "fmin"):
            for dtype in ALL:
                self.agrees(name, numbers(4, 5, dtype=dtype), numbers(5, dtype=dtype, seed=2))
            self.agrees(name, SPECIAL, SPECIAL.flip(0))
            self.agrees(name, numbers(5, dtype=torch.int32), numbers(5))

    def test_logic(self):
        for name in ("logical_and", "logical_or", "logical_xor"):
            for dtype in ALL:
                self.agrees(name, numbers(9, dtype=dtype, low=-1, high=2), numbers(9, dtype=dtype, low=-1, high=2, seed=2))
            self.agrees(name, SPECIAL, SPECIAL.flip(0))
        self.agrees("logical_not", SPECIAL)
        self.agrees("logical_not", numbers(5, dtype=torch.bool))
        for name in ("and", "or", "xor"):
            for dtype in INTEGERS + (torch.bool,):
                x, y = numbers(9, dtype=dtype, low=-90, high=90), numbers(9, dtype=dtype, low=-90, high=90, seed=1)
                self.agrees(f"bitwise_{name}.Tensor", x, y)
                self.agrees(f"__{name}__.Tensor", x, y)
            self.agrees(f"bitwise_{name}.Scalar", x.long(), 5)
            self.agrees(f"__{name}__.Scalar", x.long(), 5)
        for dtype in INTEGERS + (torch.bool,):
            self.agrees("bitwise_not", numbers(9, dtype=dtype))
        for name, other in (("bitwise_left_shift", "__lshift__"), ("bitwise_right_shift", "__rshift__")):
            x, y = torch.tensor([1, -7, 90]), torch.tensor([0, 2, 5])
            self.agrees(f"{name}.Tensor", x, y)
            self.agrees(f"{name}.Tensor_Scalar", x, 2)
            self.agrees(f"{other}.Tensor", x, y)
            self.agrees(f"{other}.Scalar", x, 2)

    def test_bounds_and_choices(self):
        for dtype in FLOATS + INTEGERS:
            x = numbers(4, 5, dtype=dtype)
            self.agrees("clamp", x, -1, 2)
            self.agrees("clamp", x, None, 1)
            self.agrees("clip", x, 1, None)
            self.agrees("clamp_min", x, 1)
            self.agrees("clamp_max", x, 1)
            self.agrees("clamp.Tensor", x, numbers(5, dtype=dtype), None)
            self.agrees("masked_fill.Scalar", x, numbers(5, dtype=torch.bool), 2)
            self.agrees("masked_fill.Tensor", x, numbers(4, 1, dtype=torch.bool), torch.tensor(3))
        for dtype in ALL:
            self.agrees("where.self", numbers(4, 1, dtype=torch.bool), numbers(4, 5, dtype=dtype), numbers(5))
        self.agrees("clamp", SPECIAL, -1, 1)
        self.agrees("clamp", numbers(5, dtype=torch.int64), 0.5, 1.5)
        self.agrees("clamp", numbers(5), 2, -2)
        self.agrees("clip.Tensor", numbers(5), torch.tensor(-1.0), torch.tensor(1.0))
        self.agrees("clamp_min.Tensor", numbers(5), torch.tensor(0.5))
        self.agrees("clamp_max.Tensor", numbers(5), torch.tensor(0.5))
        self.agrees("where.ScalarSelf", numbers(5, dtype=torch.bool), 2.0, numbers(5))
        self.agrees("where.ScalarOther", numbers(5, dtype=torch.bool), numbers(5), 2)
        self.agrees("where.Scalar", numbers(5, dtype=torch.bool), 2.0, 1.0)
        self.agrees("masked_fill.Scalar", numbers(4), numbers(4, dtype=torch.bool), -math.inf)
        self.agrees("masked_fill.Scalar", numbers(4), numbers(4, dtype=torch.bool), torch.finfo(torch.float32).min)

    def test_special_values(self):
        for name in ("isnan", "isinf", "isposinf", "isneginf", "isfinite"):
            self.agrees(name, SPECIAL)
            for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool):
                self.agrees(name, SPECIAL.nan_to_num().to(dtype))
        self.agrees("nan_to_num", SPECIAL)
        self.agrees("nan_to_num", SPECIAL.half())
        self.agrees("nan_to_num", SPECIAL.double(), 1.0, 2.0, -3.0)
        self.agrees("nan_to_num", numbers(4, dtype=torch.int64))

    def test_activations(self):
        for dtype in FLOATS:
            x = numbers(4, 6, dtype=dtype, low=-8, high=8)
            for name in ("relu", "relu6", "hardsigmoid", "hardswish", "elu", "celu", "selu", "leaky_relu", "silu", "mish", "gelu",
                         "softplus", "log_sigmoid", "softshrink", "hardshrink", "hardtanh", "glu"):
                self.agrees(name, x)
            self.agrees("gelu", x, approximate="tanh")
            self.agrees("elu", x, 0.3)
            self.agrees("elu", x, 0.3, 1.5, 0.7)
            self.agrees("celu", x, 0.4)
            self.agrees("leaky_relu", x, 0.2)
            self.agrees("hardtanh", x, -0.5, 2)
            self.agrees("softplus", x, 2, 1.5)
            self.agrees("softshrink", x, 0.3)
            self.agrees("hardshrink", x, 0.3)
            self.agrees("threshold", x, 0.5, -1)
            self.agrees("rrelu", x, 0.1, 0.3)
            self.agrees("glu", x, 0)
            self.agrees("log_sigmoid_forward", x, read=[0])
            self.agrees("prelu", x, numbers(6, dtype=dtype))
            self.agrees("prelu", x, numbers(1, dtype=dtype))
        self.agrees("rrelu_with_noise", numbers(5), numbers(5), 0.1, 0.3)
        self.agrees("relu", SPECIAL)
        self.agrees("relu", numbers(5, dtype=torch.int64))
        self.agrees("hardtanh", numbers(5, dtype=torch.int64), -1, 1)
        self.agrees("threshold", SPECIAL, 0, 2)
        self.agrees("prelu", numbers(2, 3, 4, 5), numbers(3))
        self.agrees("_prelu_kernel", numbers(2, 3, 4), numbers(3, 1))

    def test_dropout(self):
        for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
            self.agrees(name, numbers(2, 3, 4), 0.5, False)
            self.refused(name, numbers(2, 3, 4), 0.5, True, reason="in training")
        self.agrees("native_dropout", numbers(5), 0.5, False)
        self.refused("rrelu", numbers(5), 0.1, 0.3, True, reason="in training")
