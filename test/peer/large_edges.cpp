#include "peer/edge_cases.hpp"

// Odd values among many, where kernels work by vectors, tiles and threads.
namespace kiln::peer {
namespace {

constexpr std::size_t times = 77;

// The values of a case over and over.
edge_case repeated(edge_case c) {
  const lens first = c.inputs[0].extents;
  for (tensor_of& t : c.inputs) {
    if (t.extents != first) continue;
    t.extents[0] *= times;
    const std::vector<double> reals = t.reals;
    const std::vector<std::int64_t> whole = t.whole;
    for (std::size_t k = 1; k < times; ++k) {
      t.reals.insert(t.reals.end(), reals.begin(), reals.end());
      t.whole.insert(t.whole.end(), whole.begin(), whole.end());
    }
  }
  c.detail += "_large";
  return c;
}
// `at` of each `every` elements is that.
tensor_of marked(lens extents, double value, std::size_t every, std::size_t at, int type = f32) {
  tensor_of t = some(std::move(extents), type);
  for (std::size_t k = at; k < t.reals.size(); k += every) t.reals[k] = value;
  return t;
}

}  // namespace

std::vector<edge_case> large_edges() {
  std::vector<edge_case> all;
  for (const edge_case& c : number_edges())
    if (c.inputs[0].extents.size() == 1 && c.inputs[0].extents[0] > 1) all.push_back(repeated(c));
  const auto add = [&](edge_case c) { all.push_back(std::move(c)); };
  const std::vector<message> no{};
  for (const auto& [name, value] : {std::pair<std::string, double>{"nan", nan}, {"inf", inf}, {"minus_inf", -inf}}) {
    const tensor_of rows = marked({9, 257}, value, 700, 350), columns = marked({257, 9}, value, 700, 350),
                    image = marked({1, 8, 19, 21}, value, 500, 77), filters = some({8, 8, 3, 3});
    for (const std::string op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                                 "ReduceLogSumExp", "ReduceSumSquare"})
      for (const std::int64_t axis : {0, 1}) {
        if (name == "nan" && (op == "ReduceMax" || op == "ReduceMin")) continue;
        const std::int64_t v = op == "ReduceSum" ? 13 : 18;
        add({op, name + "_rows" + std::to_string(axis), v, {rows, n({1}, {axis})}});
        add({op, name + "_columns" + std::to_string(axis), v, {columns, n({1}, {axis})}});
      }
    for (const std::string op : {"Softmax", "LogSoftmax"})
      for (const std::int64_t axis : {0, 1}) add({op, name + std::to_string(axis), 13, {rows}, {attr("axis", axis)}});
    add({"Conv", name, 11, {image, filters}});
    add({"Conv", name + "_padded", 11, {image, filters, some({8})}, {attr("pads", lens{1, 1, 1, 1})}});
    add({"Conv", name + "_points", 11, {image, some({5, 8, 1, 1})}});
    add({"Conv",
         name + "_groups",
         11,
         {image, some({8, 1, 3, 3})},
         {attr("group", 8), attr("pads", lens{1, 1, 1, 1})}});
    add({"Conv",
         name + "_stride",
         11,
         {image, filters},
         {attr("strides", lens{2, 2}), attr("pads", lens{1, 1, 1, 1})}});
    add({"ConvTranspose",
         name,
         11,
         {image, some({8, 4, 3, 3})},
         {attr("strides", lens{2, 2}), attr("pads", lens{1, 1, 1, 1})}});
    add({"MatMul", name + "_left", 13, {rows, some({257, 33})}});
    add({"MatMul", name + "_right", 13, {some({5, 257}), columns}});
    add({"Gemm", name + "_bias", 13, {some({9, 31}), some({31, 257}), rows}});
    add({"Resize", name, 13, {image, absent, f({4}, {1, 1, 2, 1.5})}});
    add({"AveragePool", name, 11, {image}, {attr("kernel_shape", lens{3, 3}), attr("pads", lens{1, 1, 1, 1})}});
    add({"AveragePool",
         name + "_stride",
         11,
         {image},
         {attr("kernel_shape", lens{2, 2}), attr("strides", lens{2, 2})}});
    add({"GlobalAveragePool", name, 1, {image}});
    if (name == "inf")
      add({"MaxPool",
           name,
           12,
           {image},
           {attr("kernel_shape", lens{3, 3}), attr("strides", lens{2, 2}), attr("pads", lens{1, 1, 1, 1})}});
    add({"LayerNormalization", name, 17, {rows, some({257}), some({257})}});
    add({"BatchNormalization", name, 15, {image, some({8}), some({8}), some({8}), f({8}, {1, 2, 3, 4, 5, 6, 7, 8})}});
    add({"InstanceNormalization", name, 6, {image, some({8}), some({8})}});
    add({"CumSum", name, 14, {rows, n({}, {1})}});
    add({"CumSum", name + "_columns", 14, {rows, n({}, {0})}});
    add({"Where", name, 16, {some({9, 257}, boolean), rows, f({}, {1})}});
    add({"Max", name, 13, {rows, f({257}, std::vector<double>(257, .5))}});
    add({"Min", name, 13, {f({9, 1}, std::vector<double>(9, .5)), rows}});
    add({"Mul", name + "_zero", 13, {rows, f({9, 1}, std::vector<double>(9, 0))}});
    if (name != "nan") {
      add({"TopK", name, 11, {rows, n({1}, {40})}, no, {f32, i64}});
      add({"TopK", name + "_least", 11, {columns, n({1}, {33})}, {attr("axis", 0), attr("largest", 0)}, {f32, i64}});
      add({"ArgMax", name, 13, {rows}, {attr("axis", 1)}, {i64}});
      add({"ArgMin", name, 13, {columns}, {attr("axis", 0), attr("select_last_index", 1)}, {i64}});
      add({"OneHot", name, 11, {n({300}, std::vector<std::int64_t>(300, 2)), n({}, {7}), f({2}, {value, 1})}});
    }
  }
  for (const int type : {i8, u8, i32, i64, boolean, f64, f16}) {
    const tensor_of x = some({5, 67, 9}, type);
    const std::string name = "type" + std::to_string(type);
    add({"Transpose", name, 13, {x}, {attr("perm", lens{2, 0, 1})}, {type}});
    add({"Slice", name, 13, {x, n({2}, {-1, 60}), n({2}, {least, 3}), n({2}, {2, 1}), n({2}, {-2, -3})}, no, {type}});
    add({"Gather", name, 13, {x, n({3}, {-1, 0, 33})}, {attr("axis", 1)}, {type}});
    add({"Concat", name, 13, {x, x}, {attr("axis", 1)}, {type}});
    add({"Tile", name, 13, {x, n({3}, {1, 2, 3})}, no, {type}});
    add({"Expand", name, 13, {some({5, 1, 9}, type), n({4}, {2, 1, 67, 1})}, no, {type}});
    add({"Where", name, 16, {some({5, 67, 9}, boolean), x, some({9}, type)}, no, {type}});
    if (type != boolean) {
      add({"ReduceMax", name, 18, {x, n({1}, {1})}, no, {type}});
      add({"ReduceMin", name, 18, {x, n({1}, {-1})}, no, {type}});
      add({"TopK", name, 11, {x, n({1}, {5})}, {attr("axis", 1)}, {type, i64}});
      add({"ArgMax", name, 13, {x}, {attr("axis", 1), attr("select_last_index", 1)}, {i64}});
      add({"Equal", name, 13, {x, some({9}, type)}, no, {boolean}});
    }
    if (type != boolean && type != f16 && type != i8 && type != u8) {
      add({"ReduceSum", name, 13, {x, n({2}, {0, 2})}, no, {type}});
      add({"CumSum", name, 14, {x, n({}, {1})}, {attr("reverse", 1)}, {type}});
      add({"MatMul", name, 13, {some({3, 67}, type), some({67, 35}, type)}, no, {type}});
      add({"Mul", name, 14, {x, some({67, 1}, type)}, no, {type}});
    }
    for (const int to : {i8, u8, i32, i64, boolean, f64, f16, f32})
      if (to != type) add({"Cast", name + "_" + std::to_string(to), 13, {x}, {attr("to", to)}, {to}});
  }
  return all;
}

}  // namespace kiln::peer
