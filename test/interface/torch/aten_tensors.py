"""PyTorch's operators that reduce, move, create and index, in kiln beside eager ones."""

import math

import torch
from aten_cases import CaseTest, numbers

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8)
ALL = FLOATS + INTEGERS + (torch.bool,)
WITH_NAN = torch.tensor([[1.0, math.nan, 3.0, 3.0], [math.inf, 2.0, -math.inf, 2.0], [-1.0, -1.0, -4.0, -4.0]])


class ReduceTest(CaseTest):
    def test_sums(self):
        for dtype in ALL:
            x = numbers(3, 4, 5, dtype=dtype)
            self.agrees("sum", x)
            for dims in ([1], [-1, 0], [0, 1, 2]):
                self.agrees("sum.dim_IntList", x, dims)
                self.agrees("sum.dim_IntList", x, dims, True)
            self.agrees("prod", x)
            self.agrees("prod.dim_int", x, -2)
            self.agrees("cumsum", x, 1)
            self.agrees("cumprod", x, -1)
            self.agrees("count_nonzero", x)
            self.agrees("count_nonzero.dim_IntList", x, [1])
        for dtype in FLOATS:
            x = numbers(3, 4, 5, dtype=dtype)
            self.agrees("mean", x)
            self.agrees("mean.dim", x, [-1, 0], True)
            self.agrees("logsumexp", x, [1], True)
            self.agrees("nansum", torch.where(x > 1, torch.tensor(math.nan, dtype=dtype), x), [1])
        x = numbers(3, 4, dtype=torch.int32)
        self.agrees("sum.dim_IntList", x, [0], dtype=torch.float32)
        self.agrees("sum", x, dtype=torch.int32)
        self.agrees("mean.dim", x, [0], dtype=torch.float64)
        self.agrees("sum.dim_IntList", numbers(3, 4), [])
        self.agrees("logsumexp", torch.tensor([[-math.inf, -math.inf], [math.inf, 1.0]]), [1])
        for name in ("sum", "mean", "prod"):
            self.agrees(name, torch.tensor(3.0))
            self.agrees(name, torch.zeros(0, 3))
        self.agrees("sum.dim_IntList", torch.zeros(0, 3), [0])
        self.agrees("cumsum", torch.tensor(3.0), 0)

    def test_extremes(self):
        for dtype in ALL:
            x = numbers(3, 4, 5, dtype=dtype)
            for name in ("max", "min"):
                self.agrees(name, x)
                self.agrees(f"a{name}", x, [0, -1], True)
                self.agrees(f"{name}.dim", x, 1)
                self.agrees(f"{name}.dim", x, -1, True)
                if dtype != torch.bool:
                    self.agrees(f"arg{name}", x)
                    self.agrees(f"arg{name}", x, 1, True)
                    self.agrees(f"arg{name}", x, None, True)
            self.agrees("aminmax", x)
            self.agrees("aminmax", x, dim=1, keepdim=True)
        for name in ("max", "min"):
            self.agrees(f"{name}.dim", WITH_NAN, 1)
            self.agrees(f"{name}.dim", WITH_NAN, 0, read=[0])
            self.agrees(f"{name}.dim", torch.tensor(2.0), 0)
            self.agrees(f"arg{name}", torch.tensor(2.0))
            self.agrees(name, WITH_NAN)
            self.agrees(name, torch.tensor(2.0))

    def test_flags(self):
        for name in ("any", "all"):
            for dtype in ALL:
                x = numbers(3, 4, 5, dtype=dtype, low=-1, high=3)
                self.agrees(name, x)
                self.agrees(f"{name}.dim", x, 1, True)
                self.agrees(f"{name}.dim", x, -1)
            self.agrees(name, torch.zeros(0, dtype=torch.bool))
            self.agrees(f"{name}.dims", numbers(3, 4, 5, dtype=torch.bool), [0, 1])

    def test_deviations(self):
        for dtype in FLOATS:
            x = numbers(3, 4, 5, dtype=dtype)
            for name in ("std", "var"):
                self.agrees(name, x)
                self.agrees(name, x, False)
                self.agrees(f"{name}.dim", x, [1], True, True)
                self.agrees(f"{name}.dim", x, [0, 2], False)
                for correction in (0, 1, 2):
                    self.agrees(f"{name}.correction", x, [-1], correction=correction)
                    self.agrees(f"{name}_mean.correction", x, [0, 1], correction=correction, keepdim=True)
        self.agrees("var.correction", numbers(3, 1), [1], correction=1)
        self.agrees("std.correction", numbers(3, 4) + 1000, None, correction=0, tolerance=1e-4)

    def test_norms(self):
        for dtype in FLOATS:
            x = numbers(3, 4, 5, dtype=dtype)
            for order in (2, 1, 0, 3, 2.5, math.inf, -math.inf):
                self.agrees("linalg_vector_norm", x, order, [1], True)
            self.agrees("linalg_vector_norm", x)
            self.agrees("norm.ScalarOpt_dim", x, 2, [1, 2])
            self.agrees("norm.Scalar", x, 3)
        self.agrees("norm.ScalarOpt_dim_dtype", numbers(3, 4), 2, [1], True, dtype=torch.float64)
        self.agrees("norm.ScalarOpt_dtype", numbers(3, 4), 1, dtype=torch.float64)
        self.agrees("linalg_vector_norm", numbers(3, 4), 2, [0], dtype=torch.float64)

    def test_sorts(self):
        for dtype in FLOATS + INTEGERS:
            x = torch.randperm(40, generator=torch.Generator().manual_seed(1)).reshape(5, 8).to(dtype)
            self.agrees("topk", x, 3)
            self.agrees("topk", x, 2, 0, False)
            self.agrees("sort", x)
            self.agrees("sort", x, 0, True)
            self.agrees("argsort", x, 1)
        self.agrees("sort.stable", numbers(5, 8, dtype=torch.int64), stable=True, dim=1, descending=True)
        self.agrees("sort.stable", WITH_NAN, stable=True, dim=1)
        self.agrees("sort.stable", WITH_NAN, stable=True, dim=1, descending=True, read=[0])
        self.agrees("sort", numbers(9, dtype=torch.bool), read=[0])
        self.agrees("sort", torch.tensor(2.0))


class CreateTest(CaseTest):
    def test_copies(self):
        for a in ALL:
            for b in ALL:
                self.agrees("_to_copy", numbers(2, 3, dtype=a, low=0, high=5), dtype=b)
        x = numbers(2, 3)
        self.agrees("_to_copy", torch.tensor([math.nan, 0.0, -0.5, 2.9, -2.9]), dtype=torch.bool)
        self.agrees("_to_copy", torch.tensor([-0.5, 2.9, -2.9]), dtype=torch.int64)
        self.agrees("to.dtype", x, torch.float64)
        self.agrees("to.dtype_layout", x, dtype=torch.int32)
        self.agrees("to.device", x, torch.device("cpu"), torch.float16)
        self.agrees("to.other", x, numbers(1, dtype=torch.float64))
        self.agrees("type_as", x, numbers(1, dtype=torch.int64))
        self.agrees("copy", x, numbers(3, dtype=torch.float64))
        self.agrees("fill.Scalar", x, 2.5)
        self.agrees("fill.Scalar", x.long(), 2.5)
        self.agrees("fill.Tensor", x, torch.tensor(3))
        for name in ("detach", "alias", "clone", "contiguous", "lift", "lift_fresh", "lift_fresh_copy", "detach_copy",
                     "alias_copy", "resolve_conj", "resolve_neg", "conj", "real"):
            self.agrees(name, x)
        self.agrees("clone", x.t(), memory_format=torch.contiguous_format)
        self.refused("_to_copy", x, dtype=torch.complex64, reason="complex64")

    def test_numbers(self):
        x = numbers(2, 3, dtype=torch.float16)
        for dtype in ALL:
            self.agrees("full", [2, 3], 1, dtype=dtype)
            self.agrees("ones", [2, 0], dtype=dtype)
            self.agrees("zeros", [], dtype=dtype)
            self.agrees("scalar_tensor", 1, dtype=dtype)
            self.agrees("zeros_like", x, dtype=dtype)
        self.agrees("full", [2], -math.inf)
        self.agrees("full", [2], 7)
        self.agrees("full_like", x, 2.5)
        self.agrees("ones_like", x)
        self.agrees("new_full", x, [4], 3)
        self.agrees("new_ones", x, [4])
        self.agrees("new_zeros", x, [4, 1], dtype=torch.int64)
        self.agrees("eye", 3)
        self.agrees("eye.m", 2, 4, dtype=torch.int64)
        self.agrees("linspace", -1, 1, 7)
        self.agrees("arange", 5)
        self.agrees("arange", 2.5)
        self.agrees("arange.start", 2, 7)
        self.agrees("arange.start_step", 7, -2, -3, dtype=torch.float32)
        self.agrees("one_hot", torch.tensor([[0, 2], [1, 3]]), 5)
        self.refused("one_hot", torch.tensor([0, 2]), -1, reason="found by a run")

    def test_what_is_uninitialized_has_its_shape_and_dtype(self):
        x = numbers(2, 3)
        for name, args in (("empty.memory_format", ([2, 3],)), ("empty_strided", ([2, 3], [1, 2])), ("empty_like", (x,)),
                           ("new_empty", (x, [4])), ("new_empty_strided", (x, [4, 2], [1, 4]))):
            self.has_the_shape(name, *args)


class ShapeTest(CaseTest):
    def test_views(self):
        for dtype in ALL:
            x = numbers(2, 3, 4, dtype=dtype)
            for name in ("view", "_unsafe_view", "reshape", "view_copy"):
                self.agrees(name, x, [4, -1])
            self.agrees("permute", x, [2, 0, -2])
            self.agrees("transpose.int", x, 0, -1)
            self.agrees("slice.Tensor", x, 1, 1, 3)
            self.agrees("cat", [x, x], 1)
            self.agrees("flip", x, [0, -1])
        x = numbers(2, 3, 4)
        self.agrees("_reshape_alias", x, [6, 4], [4, 1])
        self.agrees("view", x, [2, 3, 2, 2])
        self.agrees("view", torch.tensor(1.0), [1, 1])
        self.agrees("view", torch.zeros(0, 4), [2, 0])
        self.agrees("reshape", x.transpose(0, 1), [6, 4])
        self.agrees("view_as", x, numbers(6, 4))
        self.agrees("reshape_as", x, numbers(6, 4))
        for start, end in ((0, -1), (1, 2), (0, 1), (1, 1)):
            self.agrees("flatten.using_ints", x, start, end)
        self.agrees("flatten.using_ints", torch.tensor(1.0))
        self.agrees("unflatten.int", x, -1, [2, -1])
        self.agrees("unflatten.int", x, 0, [1, 2])
        self.agrees("permute_copy", x, [1, 2, 0])
        self.agrees("transpose.int", torch.tensor(1.0), 0, -1)
        for name in ("swapaxes", "swapdims", "transpose_copy.int"):
            self.agrees(name, x, 1, 2)
        for name in ("t", "numpy_T", "t_copy"):
            self.agrees(name, numbers(3, 4))
            self.agrees(name, numbers(3))
        self.agrees("movedim.int", x, 0, -1)
        self.agrees("movedim.intlist", x, [0, 2], [1, 0])

    def test_extents(self):
        x = numbers(2, 1, 3, 1)
        self.agrees("squeeze", x)
        for dim in (0, 1, -1):
            self.agrees("squeeze.dim", x, dim)
        self.agrees("squeeze.dims", x, [0, 1])
        self.agrees("squeeze_copy.dims", x, [1, -1])
        self.agrees("_reshape_copy", x, [3, 2])
        self.agrees("squeeze_copy", x)
        self.agrees("squeeze_copy.dim", x, 1)
        self.agrees("squeeze", torch.tensor(1.0))
        self.agrees("squeeze.dim", torch.tensor(1.0), 0)
        for dim in (0, 2, -1):
            self.agrees("unsqueeze", x, dim)
        self.agrees("unsqueeze_copy", torch.tensor(1.0), 0)
        self.agrees("expand", x, [5, -1, 4, -1, 7])
        self.agrees("expand", torch.tensor(1.0), [2, 3])
        self.agrees("expand_copy", x, [2, 4, 3, 2])
        self.agrees("broadcast_to", x, [2, 4, 3, 2])
        self.agrees("expand_as", x, numbers(2, 4, 3, 2))
        self.agrees("repeat", numbers(2, 3), [2, 1, 3])
        self.agrees("repeat", numbers(2, 3), [1, 1])
        self.agrees("repeat", numbers(2, 3), [0, 2])
        self.agrees("tile", numbers(2, 3), [2])
        self.agrees("repeat_interleave.self_int", numbers(2, 3), 3, 1)
        self.agrees("repeat_interleave.self_int", numbers(2, 3), 2)

    def test_parts(self):
        x = numbers(4, 7, 3)
        for how in ((1, 2, 5), (1, -3, -1), (1, None, None, 2), (1, 1, 100, 3), (0, 5, 2), (1, 4, 4), (-1, 1, 9223372036854775807)):
            self.agrees("slice.Tensor", x, *how)
        self.agrees("slice_copy.Tensor", x, 1, 2, 5)
        self.agrees("narrow", x, 1, -3, 2)
        for index in (0, 2, -1):
            self.agrees("select.int", x, 1, index)
        self.agrees("select_copy.int", x, -1, 1)
        self.agrees("split.Tensor", x, 3, 1)
        self.agrees("split.Tensor", torch.zeros(0, 2), 3)
        self.agrees("split_copy.Tensor", x, 2)
        self.agrees("split_with_sizes", x, [2, 0, 5], 1)
        self.agrees("split_with_sizes_copy", x, [1, 3])
        self.agrees("split.sizes", x, [1, 3])
        self.agrees("chunk", x, 3, 1)
        self.agrees("chunk", x, 5)
        self.agrees("unsafe_chunk", x, 2)
        self.agrees("unsafe_split.Tensor", x, 3)
        self.agrees("unsafe_split_with_sizes", x, [1, 3])
        self.agrees("unbind.int", x, -1)
        self.agrees("unbind_copy.int", x)
        self.agrees("unfold", x, 1, 3, 2)
        self.agrees("unfold", torch.tensor(1.0), 0, 1, 1)
        for how in ((0, 0, 1), (1, 0, 1), (-1, 1, 2), (0, -1, 0)):
            self.agrees("diagonal", x, *how)
        self.agrees("diagonal_copy", x)

    def test_joins(self):
        x, y = numbers(2, 3), numbers(4, 3, seed=1)
        self.agrees("cat", [x, y])
        self.agrees("cat", [x, y.double(), x.long()])
        self.agrees("cat", [torch.zeros(0), x, torch.zeros(0)], -2)
        self.agrees("cat", [torch.zeros(0), torch.zeros(0)])
        for name in ("concat", "concatenate"):
            self.agrees(name, [x, x], -1)
        self.agrees("stack", [x, x, x], -1)
        self.agrees("stack", [x, x.double()], 1)
        self.agrees("stack", [torch.tensor(1.0), torch.tensor(2.0)])

    def test_orders(self):
        x = numbers(4, 6, 5)
        self.agrees("flip", x, [-1])
        self.agrees("roll", x, [2, -1], [0, -1])
        self.agrees("roll", x, [3])
        self.agrees("roll", x, [0], [1])
        for k in (-2, 0, 1):
            self.agrees("tril", x, k)
            self.agrees("triu", x, k)
        self.agrees("tril", numbers(3, 3, dtype=torch.bool))
        self.agrees("triu", numbers(3, 3, dtype=torch.int64))
        self.agrees("as_strided", x, [3, 4], [7, 2], 5)
        self.agrees("as_strided_copy", x, [2], [0])
        self.refused("as_strided", x.t() if x.dim() == 2 else x.transpose(0, 1), [2], [1], reason="not contiguous")


class IndexTest(CaseTest):
    def test_gathers(self):
        i = torch.tensor([[0, 3], [2, -1]]) % 4
        for dtype in ALL:
            x = numbers(4, 5, dtype=dtype)
            self.agrees("embedding", x, i)
            self.agrees("index_select", x, 1, torch.tensor([4, 0, 0]))
            self.agrees("gather", x, 0, torch.tensor([[0, 3, 2], [1, 1, 0]]))
            self.agrees("take", x, torch.tensor([[19, 0], [3, 3]]))
            self.agrees("index.Tensor", x, [torch.tensor([-1, 2])])
        x = numbers(4, 5, 6)
        self.agrees("embedding", numbers(4, 3), torch.tensor(2, dtype=torch.int32), 1)
        self.agrees("index_select", x, -1, torch.tensor(2))
        self.agrees("gather", x, -1, torch.tensor([[[0, 5, 2, 2, 2, 2, 1]]]))
        self.agrees("gather", torch.tensor(2.0), 0, torch.tensor([0, 0]))
        self.agrees("gather", x[0, 0], 0, torch.tensor(3))

    def test_indices(self):
        x = numbers(4, 5, 6, 3)
        a, b = torch.tensor([[0, 3, -1]]), torch.tensor([[1], [-5]])
        for name in ("index.Tensor", "_unsafe_index.Tensor"):
            self.agrees(name, x, [a, b])
            self.agrees(name, x, [None, a])
            self.agrees(name, x, [None, a, b])
            self.agrees(name, x, [a, None, b])
            self.agrees(name, x, [None, a, None, torch.tensor(2)])
            self.agrees(name, x, [a, b, a])
        self.agrees("index.Tensor", x, [None, torch.tensor(2)])
        self.refused("index.Tensor", x, [x[..., 0] > 0], reason="decide its result's shape")

    def test_places(self):
        x, a, b = numbers(4, 5, 3), torch.tensor([0, 3, -1]), torch.tensor([1, -5, 2])
        for accumulate in (False, True):
            self.agrees("index_put", x, [a, b], numbers(3, 3), accumulate)
            self.agrees("index_put", x, [None, b], torch.tensor(2.0), accumulate)
            self.agrees("index_put", x, [a, None, torch.tensor(1)], numbers(3, 5), accumulate)
        self.agrees("_unsafe_index_put", x, [a, b], numbers(3, 3))
        self.agrees("_index_put_impl", x, [a, b], numbers(3, 3), True, True)
        self.agrees("index_put", x, [torch.tensor([1, 1])], numbers(2, 1, 1), True)
        self.agrees("index_put", x, [x > 0], torch.tensor(-1.0))
        self.agrees("index_put", x, [x[:, :, 0] > 0], torch.tensor(-1.0))
        self.agrees("index_put", x.long(), [a], torch.tensor(7))
        self.agrees("index_put", x > 0, [a], torch.tensor(True))
        self.refused("index_put", x, [x > 0], numbers(int((x > 0).sum())), reason="how many values")

    def test_scatters(self):
        i = torch.tensor([[0, 2, 1], [3, 1, 0]])
        for dtype in FLOATS + INTEGERS:
            x, y = numbers(4, 5, dtype=dtype), numbers(2, 4, dtype=dtype, seed=5)
            self.agrees("scatter.src", x, 0, i, y)
            self.agrees("scatter.value", x, 1, i, 2)
            self.agrees("scatter_add", x, 0, i, y)
            for reduce in ("sum", "prod", "amin", "amax", "mean"):
                for include_self in (True, False):
                    self.agrees("scatter_reduce.two", x, 0, i * 0, y, reduce, include_self=include_self)
                    self.agrees("scatter_reduce.two", x, 1, i, y, reduce, include_self=include_self)
        x, y = numbers(4, 5), numbers(2, 4)
        for reduce in ("add", "multiply"):
            self.agrees("scatter.reduce", x, 0, i, y, reduce=reduce)
            self.agrees("scatter.value_reduce", x, 0, i, 2.0, reduce=reduce)
        self.agrees("scatter.value", numbers(4, 5, dtype=torch.bool), 0, i, True)
        self.agrees("scatter.src", torch.tensor(1.0), 0, torch.tensor(0), torch.tensor(2.0))
        self.agrees("scatter_add", torch.zeros(3), 0, torch.tensor([0, 0, 2, 0]), numbers(4))

    def test_rows(self):
        i = torch.tensor([3, 0])
        for dtype in ALL:
            x = numbers(4, 5, dtype=dtype)
            self.agrees("index_copy", x, 0, i, numbers(2, 5, dtype=dtype, seed=2))
            self.agrees("index_copy", x, -1, i, numbers(4, 2, dtype=dtype, seed=2))
            self.agrees("index_fill.int_Scalar", x, 1, i, 1)
            self.agrees("index_fill.int_Tensor", x, 0, i, torch.tensor(1))
        self.agrees("index_add", numbers(4, 5), 0, torch.tensor([1, 1]), numbers(2, 5))
        self.agrees("index_add", numbers(4, 5), 1, torch.tensor([1, 4]), numbers(4, 2), alpha=2)
        self.agrees("index_copy", torch.tensor(1.0), 0, torch.tensor([0]), torch.tensor(2.0))
        x = numbers(4, 5, 3)
        for index in (0, 2, -1):
            self.agrees("select_scatter", x, numbers(4, 3), 1, index)
        for how in ((0, 1, 3), (0, None, 4), (0, -2, None), (0, 0, 4, 2), (0, 3, 1)):
            n = len(range(*slice(*how[1:3], how[3] if len(how) > 3 else 1).indices(4)))
            self.agrees("slice_scatter", x, numbers(n, 5, 3, seed=1), *how)
