#include "peer/edge_cases.hpp"

namespace kiln::peer {

std::vector<edge_case> sum_edges() {
  const tensor_of x = some({2, 3, 4}), one = f({}, {2.5}), none_at = some({2, 0, 3});
  const tensor_of odd = f({2, 3}, {nan, inf, 1, -inf, -inf, -inf});
  std::vector<edge_case> all;
  const auto add = [&](edge_case c) { all.push_back(std::move(c)); };
  for (const std::string op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                               "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}) {
    const std::int64_t v = op == "ReduceSum" ? 13 : 18;
    add({op, "negative", v, {x, n({2}, {-1, 0})}, {attr("keepdims", 0)}});
    add({op, "all", v, {x}, {attr("keepdims", 0)}});
    add({op, "no_axes", v, {x, n({0}, {})}, {attr("noop_with_empty_axes", 1)}});
    add({op, "no_axes_all", v, {x, n({0}, {})}});
    add({op, "absent", v, {x, absent}, {attr("noop_with_empty_axes", 1)}});
    add({op, "odd", v, {odd, n({1}, {1})}});
    add({op, "odd_columns", v, {odd, n({1}, {0})}});
    add({op, "scalar", v, {one}});
    add({op, "old", 11, {x}, {attr("axes", lens{-2}), attr("keepdims", 0)}});
    add({op, "oldest", 7, {x}, {attr("axes", lens{1})}});
    add({op, "empty_result", v, {none_at, n({1}, {0})}, {attr("keepdims", 0)}});
    if (op != "ReduceMax" && op != "ReduceMin" && op != "ReduceMean")
      add({op, "of_nothing", v, {none_at, n({1}, {1})}});
    add({op, "f64", v, {some({2, 3}, f64), n({1}, {1})}, {}, {f64}});
    add({op, "i32", v, {n({2, 2}, {7, 8, 30, 1}, i32), n({1}, {1})}, {}, {i32}});
    add({op, "i64", v, {n({2, 2}, {7, 8, 100003, 3}), n({1}, {1})}, {}, {i64}});
    add({op, "one_extent", v, {some({3, 1}), n({1}, {1})}});
  }
  add({"ReduceMax", "bools", 20, {n({2, 2}, {0, 1, 0, 0}, boolean), n({1}, {1})}, {}, {boolean}});
  add({"ReduceMin", "bytes", 18, {n({2, 2}, {0, 255, 7, 3}, u8), n({1}, {1})}, {}, {u8}});
  add({"ReduceMax", "nothing", 20, {none_at, n({1}, {1})}});
  add({"ReduceMin", "nothing_i32", 20, {some({2, 0}, i32), n({1}, {1})}, {}, {i32}});
  for (const std::string op : {"ArgMax", "ArgMin"}) {
    add({op, "ties", 13, {f({2, 4}, {1, 3, 3, 1, 0, -0.0, 0, -0.0})}, {attr("axis", -1)}, {i64}});
    add({op,
         "last_ties",
         13,
         {f({2, 4}, {1, 3, 3, 1, 0, -0.0, 0, -0.0})},
         {attr("axis", -1), attr("select_last_index", 1)},
         {i64}});
    add({op, "first_axis", 13, {x}, {attr("keepdims", 0)}, {i64}});
    add({op, "infinite", 13, {f({2, 2}, {-inf, -inf, inf, inf})}, {attr("axis", 1)}, {i64}});
    add({op, "ints", 13, {n({4}, {5, -2147483648LL, 2147483647, 2147483647}, i32)}, {}, {i64}});
    add({op, "empty_result", 13, {none_at}, {attr("axis", 0)}, {i64}});
    add({op, "bytes", 13, {n({3}, {0, 255, 255}, u8)}, {}, {i64}});
  }
  for (const std::string op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    add({op, "default", 13, {x}});
    add({op, "first", 13, {x}, {attr("axis", 0)}});
    add({op, "middle", 13, {x}, {attr("axis", -2)}});
    add({op, "old", 11, {x}, {attr("axis", 1)}});
    add({op, "old_first", 11, {x}, {attr("axis", 0)}});
    add({op, "old_negative", 11, {x}, {attr("axis", -1)}});
    add({op, "row", 13, {some({5})}});
    add({op, "empty", 13, {some({2, 0})}});
    add({op, "empty_rows", 13, {some({0, 3})}});
    add({op, "of_one", 13, {some({3, 1})}});
    if (op != "Hardmax") {
      add({op, "odd", 13, {odd}});
      add({op, "masked", 13, {f({2, 3}, {-inf, 1, 2, 0, -inf, -inf})}});
      add({op, "large", 13, {f({2, 3}, {3e38, -3e38, 0, 1000, 1001, 999})}});
      add({op, "f16", 13, {some({3, 5}, f16)}, {}, {f16}, 2e-3});
    } else {
      add({op, "ties", 13, {f({2, 3}, {1, 1, 0, 0, 2, 2})}});
    }
  }
  add({"MatMul", "vectors", 13, {some({4}), some({4})}});
  add({"MatMul", "vector_matrix", 13, {some({4}), some({4, 3})}});
  add({"MatMul", "matrix_vector", 13, {some({2, 3, 4}), some({4})}});
  add({"MatMul", "vector_batch", 13, {some({4}), some({2, 4, 3})}});
  add({"MatMul", "broadcast", 13, {some({2, 1, 3, 4}), some({5, 4, 2})}});
  add({"MatMul", "no_depth", 13, {some({2, 0}), some({0, 3})}});
  add({"MatMul", "no_rows", 13, {some({0, 4}), some({4, 3})}});
  add({"MatMul", "no_batch", 13, {some({0, 2, 4}), some({4, 3})}});
  add({"MatMul", "infinite", 13, {f({1, 2}, {inf, 0}), f({2, 2}, {1, 0, nan, 1})}});
  add({"MatMul", "i32", 13, {some({2, 3}, i32), some({3, 2}, i32)}, {}, {i32}});
  add({"MatMul", "i64", 13, {n({1, 2}, {most, 2}), n({2, 1}, {2, 3})}, {}, {i64}});
  add({"MatMul", "u64", 13, {n({1, 2}, {-1, 2}, u64), n({2, 1}, {2, 3}, u64)}, {}, {u64}});
  add({"MatMul", "f64", 13, {some({3, 3}, f64), some({3, 3}, f64)}, {}, {f64}});
  add({"MatMul", "unit", 13, {some({1, 1}), some({1, 1})}});
  add({"Gemm", "no_c", 13, {some({2, 3}), some({3, 4})}, {attr("alpha", 0.5f)}});
  add({"Gemm", "scalar_c", 13, {some({2, 3}), some({3, 4}), one}, {attr("beta", -2.0f)}});
  add({"Gemm", "column_c", 13, {some({2, 3}), some({4, 3}), some({2, 1})}, {attr("transB", 1)}});
  add({"Gemm", "row_c", 13, {some({3, 2}), some({3, 4}), some({4})}, {attr("transA", 1)}});
  add({"Gemm", "one_c", 11, {some({2, 3}), some({3, 4}), some({1, 1})}});
  add({"Gemm", "no_depth", 13, {some({2, 0}), some({0, 3}), some({3})}});
  add({"Gemm", "no_depth_no_c", 13, {some({2, 0}), some({0, 3})}});
  add({"Gemm", "no_rows", 13, {some({0, 2}), some({2, 3}), some({3})}});
  add({"Gemm", "no_beta", 13, {some({2, 3}), some({3, 2}), f({2}, {1, 2})}, {attr("beta", 0.0f)}});
  add({"Gemm", "no_alpha", 13, {some({2, 3}), some({3, 2}), f({2}, {1, 2})}, {attr("alpha", 0.0f)}});
  add({"Gemm", "old", 7, {some({2, 3}), some({3, 4}), some({4})}});
  const auto einsum = [&](const char* detail, const char* equation, std::vector<tensor_of> in) {
    add({"Einsum", detail, 12, std::move(in), {attr("equation", equation)}});
  };
  einsum("trace", "ii->", {some({3, 3})});
  einsum("diagonal", "ii->i", {some({3, 3})});
  einsum("implicit", "ij,jk", {some({2, 3}), some({3, 4})});
  einsum("implicit_order", "ba", {some({2, 3})});
  einsum("ellipsis", "...ij,...jk->...ik", {some({2, 2, 3}), some({3, 4})});
  einsum("outer", "i,j->ji", {some({2}), some({3})});
  einsum("sum", "ijk->k", {x});
  einsum("spaces", " i j , j -> i ", {some({2, 3}), some({3})});
  einsum("three", "ij,jk,kl->il", {some({2, 3}), some({3, 2}), some({2, 4})});
  einsum("scalar", ",ij->ij", {one, some({2, 3})});
  einsum("empty", "ij,jk->ik", {some({2, 0}), some({0, 3})});
  einsum("broadcast_one", "ij,ij->ij", {some({2, 1}), some({2, 3})});
  add({"MatMulInteger",
       "zeros",
       10,
       {n({2, 2}, {0, 255, 7, 128}, u8), n({2, 2}, {255, 0, 3, 4}, u8), n({}, {128}, u8), n({}, {127}, u8)},
       {},
       {i32}});
  add({"MatMulInteger",
       "columns",
       10,
       {some({2, 3}, u8), some({3, 2}, i8), n({}, {3}, u8), n({2}, {1, -2}, i8)},
       {},
       {i32}});
  add({"MatMulInteger", "no_zeros", 10, {some({2, 3}, u8), some({3, 2}, u8)}, {}, {i32}});
  add({"MatMulInteger",
       "signed",
       10,
       {n({1, 2}, {-128, 127}, i8), n({2, 1}, {-128, 127}, i8), absent, n({}, {-128}, i8)},
       {},
       {i32}});
  add({"QuantizeLinear",
       "ties",
       13,
       {f({8}, {.5, 1.5, -.5, 2.5, 1e9, -1e9, inf, -inf}), f({}, {1}), n({}, {128}, u8)},
       {},
       {u8}});
  add({"QuantizeLinear", "no_zero", 13, {f({4}, {.5, 1.5, 300, -1}), f({}, {1})}, {}, {u8}});
  add({"QuantizeLinear",
       "axis",
       13,
       {some({2, 3, 4}), f({3}, {.1, 1, 10}), n({3}, {0, -5, 5}, i8)},
       {attr("axis", -2)},
       {i8}});
  add({"QuantizeLinear", "u16", 21, {f({3}, {.5, 70000, -1}), f({}, {1}), n({}, {5}, u16)}, {}, {u16}});
  add({"QuantizeLinear", "blocks", 21, {some({4, 3}), some({2, 3})}, {attr("axis", 0), attr("block_size", 2)}, {u8}});
  add({"QuantizeLinear", "empty", 13, {some({0}), f({}, {1})}, {}, {u8}});
  add({"DequantizeLinear", "no_zero", 13, {n({3}, {-128, 0, 127}, i8), f({}, {.5})}});
  add({"DequantizeLinear", "i32", 13, {n({3}, {2147483647, -2147483647, 16777217}, i32), f({}, {.5})}});
  add({"DequantizeLinear", "axis", 13, {some({2, 3}, u8), f({2}, {.5, 2}), n({2}, {1, 200}, u8)}, {attr("axis", -2)}});
  add({"DequantizeLinear",
       "blocks",
       21,
       {some({2, 4}, i8), some({2, 2}), some({2, 2}, i8)},
       {attr("axis", -1), attr("block_size", 2)}});
  add({"DynamicQuantizeLinear", "zeros", 11, {f({3}, {0, 0, 0})}, {}, {u8, f32, u8}});
  add({"DynamicQuantizeLinear", "positive", 11, {f({3}, {1, 2, 3})}, {}, {u8, f32, u8}});
  add({"DynamicQuantizeLinear", "negative", 11, {f({3}, {-1, -2.5, -3})}, {}, {u8, f32, u8}});
  add({"QLinearMatMul",
       "signed",
       10,
       {some({2, 3}, u8), f({}, {.1}), n({}, {3}, u8), some({3, 2}, i8), f({}, {.2}), n({}, {-4}, i8), f({}, {.05}),
        n({}, {100}, u8)},
       {},
       {u8}});
  add({"LayerNormalization", "two", 17, {some({2, 3, 4}), some({3, 4})}, {attr("axis", -2)}});
  add({"LayerNormalization",
       "all",
       17,
       {some({2, 3}), some({3}), some({3})},
       {attr("epsilon", 0.1f)},
       {f32, f32, f32}});
  add({"LayerNormalization", "of_one", 17, {some({3, 1}), some({1}), some({1})}});
  add({"LayerNormalization", "constant_row", 17, {f({2, 3}, {5, 5, 5, 1e20, 1e20, 1e20}), some({3})}});
  add({"LayerNormalization", "empty", 17, {some({0, 3}), some({3})}});
  add({"LpNormalization", "zeros", 1, {f({2, 2}, {0, 0, 3, 4})}, {attr("axis", 1)}});
  add({"LpNormalization", "one", 1, {some({3, 2})}, {attr("p", 1), attr("axis", 0)}});
  add({"MeanVarianceNormalization", "default", 13, {some({2, 3, 2, 2})}});
  add({"NegativeLogLikelihoodLoss", "ignored", 13, {some({3, 4}), n({3}, {1, 3, 1})}, {attr("ignore_index", 1)}});
  add({"SoftmaxCrossEntropyLoss",
       "weighted",
       13,
       {some({3, 4}), n({3}, {1, 3, 0}), f({4}, {1, 2, .5, 0})},
       {},
       {f32, f32}});
  add({"SoftmaxCrossEntropyLoss",
       "none",
       13,
       {some({2, 4, 2}), n({2, 2}, {1, 3, 0, 2})},
       {attr("reduction", "none"), attr("ignore_index", 3)},
       {f32},
       1e-5,
       true});
  add({"Det", "batch", 11, {some({2, 3, 3})}});
  add({"HannWindow", "symmetric", 17, {n({}, {6})}, {attr("periodic", 0)}});
  add({"HammingWindow", "one", 17, {n({}, {1})}});
  add({"BlackmanWindow", "periodic", 17, {n({}, {7})}});
  add({"DFT", "one_sided", 17, {some({1, 7, 1})}, {attr("onesided", 1)}});
  add({"DFT", "inverse", 20, {some({2, 5, 2}), absent, n({}, {-2})}, {attr("inverse", 1)}});
  add({"DFT", "longer", 20, {some({1, 4, 1}), n({}, {6}), n({}, {1})}});
  add({"DFT", "shorter", 17, {some({1, 6, 3, 1}), n({}, {4})}, {attr("axis", 1)}});
  return all;
}

}  // namespace kiln::peer
