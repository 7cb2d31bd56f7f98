#include "peer/edge_cases.hpp"

namespace kiln::peer {

std::vector<edge_case> number_edges() {
  const tensor_of odd = f({14}, {nan, inf, -inf, 0, -0.0, 1, -1, 0.5, -0.5, 1000, -1000, 2.5, -1e-30, 3e38}),
                  finite = f({8}, {nan, 0, -0.0, 1, -1, 2.5, -1000, 3e38}),
                  small = f({8}, {0, -0.0, 1, -1, 0.5, -2.5, 3.5, 88});
  std::vector<edge_case> all;
  for (const char* op : {"Sign",
                         "Round",
                         "Ceil",
                         "Floor",
                         "Abs",
                         "Neg",
                         "Reciprocal",
                         "Sqrt",
                         "Log",
                         "Relu",
                         "LeakyRelu",
                         "Elu",
                         "Softplus",
                         "Sigmoid",
                         "Tanh",
                         "Erf",
                         "Exp",
                         "Mish",
                         "HardSigmoid",
                         "HardSwish",
                         "Selu",
                         "Celu",
                         "ThresholdedRelu",
                         "Shrink",
                         "Softsign",
                         "Atan",
                         "Asin",
                         "Acos",
                         "Asinh",
                         "Acosh",
                         "Atanh",
                         "Sinh",
                         "Cosh",
                         "Identity"})
    for (const int type : {f32, f64, f16}) {
      tensor_of t = odd;
      t.type = type;
      if (type == f16) t.reals = {nan, inf, -inf, 0, -0.0, 1, -1, .5, -.5, 1000, -1000, 2.5, -6.1e-5, 65504};
      if (type == f16 && std::string_view(op) == "Sign") t.reals[0] = 2;
      const std::string_view name(op);
      all.push_back({op,
                     type == f32   ? "f32"
                     : type == f64 ? "f64"
                                   : "f16",
                     20,
                     {t},
                     {},
                     {type},
                     type == f16 ? 2e-3 : 1e-5,
                     name == "Sign" || name == "Relu" || name == "Selu" || name == "Celu"});
    }
  for (const char* op : {"Sin", "Cos", "Tan"}) all.push_back({op, "f32", 20, {small}});
  for (const int type : {i8, u8, i32, i64})
    for (const char* op : {"Abs", "Neg", "Sign", "Relu"}) {
      if (type == u8 && std::string(op) == "Neg") continue;
      all.push_back({op,
                     "type" + std::to_string(type),
                     20,
                     {n({4},
                        {type == u8    ? 0
                         : type == i8  ? -128
                         : type == i32 ? -2147483648LL
                                       : least,
                         0, 1, 5},
                        type)},
                     {},
                     {type}});
    }
  const auto add = [&](edge_case c) { all.push_back(std::move(c)); };
  add({"IsInf", "positive", 20, {odd}, {attr("detect_negative", 0)}, {boolean}});
  add({"IsInf", "negative", 10, {odd}, {attr("detect_positive", 0)}, {boolean}});
  add({"IsInf", "neither", 10, {odd}, {attr("detect_positive", 0), attr("detect_negative", 0)}, {boolean}});
  add({"IsNaN", "all", 13, {odd}, {}, {boolean}});
  add({"Gelu", "erf", 20, {odd}});
  add({"Gelu", "tanh", 20, {odd}, {attr("approximate", "tanh")}});
  add({"Clip", "low", 13, {finite, f({}, {-1})}});
  add({"Clip", "high", 13, {finite, absent, f({}, {1})}});
  add({"Clip", "neither", 13, {finite}});
  add({"Clip", "crossed", 13, {odd, f({}, {2}), f({}, {-2})}});
  add({"Clip", "infinite", 13, {odd, f({}, {-inf}), f({}, {inf})}});
  add({"Clip", "ints", 13, {n({4}, {least, -3, 5, most}), n({}, {-4}), n({}, {least + 1})}, {}, {i64}});
  add({"Clip", "bytes", 13, {n({3}, {0, 100, 255}, u8), n({}, {3}, u8)}, {}, {u8}});
  add({"Clip", "old", 6, {odd}, {attr("min", -0.25f), attr("max", 0.75f)}});
  add({"Clip", "old_low", 6, {finite}, {attr("min", -0.25f)}});
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    add({op, "one", 13, {odd}});
    add({op, "nan_first", 13, {odd, f({}, {0.25})}});
    add({op, "nan_second", 13, {some({2, 14}), odd, f({1, 1}, {1})}});
  }
  add({"Max", "zeros", 13, {f({2}, {0, -0.0}), f({2}, {-0.0, 0})}, {}, {f32}, 1e-5, true});
  add({"Max", "i64", 13, {n({2, 1}, {least, most}), n({3}, {0, -1, 1})}, {}, {i64}});
  add({"Min", "u64", 13, {n({2, 1}, {-1, 5}, u64), n({3}, {0, 7, 1}, u64)}, {}, {u64}});
  add({"Max", "empty", 13, {some({0, 3}), some({3})}});
  const auto numerators = n({6}, {7, -7, 7, -7, 0, (std::int64_t{1} << 53) - 1}),
             divisors = n({6}, {3, 3, -3, -3, 5, -2});
  add({"Div", "ints", 14, {numerators, divisors}, {}, {i64}});
  add({"Div", "least", 14, {n({2}, {least, least}), n({2}, {2, -3})}, {}, {i64}});
  add({"Div", "by_constant", 14, {numerators, n({}, {-4})}, {}, {i64}});
  add({"Div", "bytes", 14, {n({3}, {200, 255, 7}, u8), n({3}, {3, 2, 9}, u8)}, {}, {u8}});
  add({"Div", "zeros", 14, {odd, f({}, {-0.0})}});
  add({"Div", "infinite", 14, {odd, f({}, {inf})}});
  add({"Div", "denormal", 14, {odd, f({}, {1e-30})}});
  add({"Mul", "wraps", 14, {n({3}, {most, least, 3}), n({3}, {2, -1, most})}, {}, {i64}});
  add({"Add", "wraps", 14, {n({2}, {most, least}), n({2}, {1, -1})}, {}, {i64}});
  add({"Add", "i8", 14, {n({2}, {127, -128}, i8), n({2}, {1, -1}, i8)}, {}, {i8}});
  add({"Sub", "u8", 14, {n({2}, {0, 5}, u8), n({2}, {1, 250}, u8)}, {}, {u8}});
  add({"Add", "empty", 14, {some({2, 0}), some({1})}});
  add({"Add", "empty_column", 14, {some({2, 0}), some({2, 1})}});
  add({"Mul", "scalars", 14, {f({}, {3}), f({}, {-4})}});
  add({"Mul", "infinite_zero", 14, {odd, f({}, {0})}});
  add({"Sub", "self", 14, {odd, odd}});
  add({"Mod", "ints", 13, {numerators, divisors}, {}, {i64}});
  add({"Mod", "fmod_ints", 13, {numerators, divisors}, {attr("fmod", 1)}, {i64}});
  add({"Mod", "i8", 13, {n({4}, {-128, 127, -7, 5}, i8), n({4}, {3, -5, -7, -3}, i8)}, {}, {i8}});
  add({"Mod", "u64", 13, {n({2}, {-1, 9}, u64), n({2}, {10, -1}, u64)}, {}, {u64}});
  add({"Mod",
       "reals",
       13,
       {f({8}, {5.3, -5.3, 5.3, -5.3, inf, 1, 0, nan}), f({8}, {2, 2, -2, -2, 2, inf, 3, 1})},
       {attr("fmod", 1)}});
  add({"Mod", "zero", 13, {f({3}, {1, -0.0, -4}), f({3}, {0, 3, 2})}, {attr("fmod", 1)}});
  add({"Pow",
       "reals",
       13,
       {f({9}, {-2, -2, 0, 0, -0.0, inf, -inf, nan, 1}), f({9}, {3, .5, 0, -1, -1, 0, 3, 0, nan})}});
  add({"Pow", "int_by_real", 13, {n({4}, {2, 3, -2, 0}, i32), f({4}, {3, .5, 2, 0})}, {}, {i32}});
  add({"Pow", "ints", 13, {n({4}, {2, -3, 7, 0}), n({4}, {3, 3, 0, 2})}, {}, {i64}});
  add({"Pow", "real_by_int", 13, {f({5}, {2, -3, 0, inf, nan}), n({5}, {-2, 3, 0, -1, 0})}});
  add({"Pow", "square", 13, {odd, f({}, {2})}});
  add({"Pow", "half", 13, {finite, f({}, {.5})}, {}, {f32}, 1e-5, true});  // a square root keeps the sign
  add({"Pow", "cube", 13, {odd, f({}, {3})}});
  add({"Pow", "zero", 13, {odd, f({}, {0})}});
  add({"Pow", "minus_one", 13, {odd, f({}, {-1})}});
  add({"Pow", "minus_half", 13, {odd, f({}, {-.5})}});
  add({"PRelu", "row", 16, {f({2, 3}, {nan, -1, -inf, 2, -0.0, -3}), f({3}, {.5, -2, 0})}});
  add({"PRelu", "channels", 16, {some({2, 3, 4}), f({3, 1}, {.5, -2, 3})}});
  add({"BitShift", "left", 11, {n({3}, {1, 128, 255}, u8), n({3}, {7, 1, 0}, u8)}, {attr("direction", "LEFT")}, {u8}});
  add({"BitShift",
       "right",
       11,
       {n({3}, {-1, 8, 1}, u64), n({3}, {63, 3, 1}, u64)},
       {attr("direction", "RIGHT")},
       {u64}});
  add({"BitwiseNot", "i8", 18, {n({3}, {-128, 0, 127}, i8)}, {}, {i8}});
  add({"BitwiseXor", "i32", 18, {n({2, 1}, {-1, 5}, i32), n({2}, {3, -8}, i32)}, {}, {i32}});
  for (const char* op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}) {
    const std::int64_t v = std::string(op).find("Or") == std::string::npos ? 13 : 16;
    add({op, "odd", v, {odd, odd}, {}, {boolean}});
    add({op, "columns", v, {f({3, 1}, {nan, 0, inf}), f({2}, {-0.0, inf})}, {}, {boolean}});
    add({op, "i64", v, {n({3}, {most, least, most - 1}), n({3}, {most - 1, most, most})}, {}, {boolean}});
    add({op, "u64", v, {n({2}, {-1, 1}, u64), n({2}, {1, -1}, u64)}, {}, {boolean}});
  }
  add({"Equal", "bools", 13, {n({2, 1}, {0, 1}, boolean), n({2}, {0, 1}, boolean)}, {}, {boolean}});
  add({"Not", "all", 13, {n({2}, {0, 1}, boolean)}, {}, {boolean}});
  add({"Xor", "columns", 13, {n({2, 1}, {0, 1}, boolean), n({2}, {0, 1}, boolean)}, {}, {boolean}});
  add({"And", "empty", 13, {n({0}, {}, boolean), n({1}, {1}, boolean)}, {}, {boolean}});
  const auto cast = [&](std::string detail, tensor_of from, int to) {
    add({"Cast", std::move(detail), 19, {std::move(from)}, {attr("to", to)}, {to}});
  };
  cast("f32_bool", odd, boolean);
  cast("f32_f16", odd, f16);
  cast("f32_f64", odd, f64);
  cast("f64_f32", f({5}, {1e300, -1e300, 1e-300, nan, 1.0000000001}, f64), f32);
  cast("f32_i32", f({6}, {1.9, -1.9, 2.5, -0.0, 16777217, -2147483648.0}), i32);
  cast("f32_i64", f({4}, {1e15, -1e15, .99, -.99}), i64);
  cast("f32_u8", f({4}, {0, 1.9, 254.9, 255}), u8);
  cast("i64_i32", n({4}, {most, least, 4294967297, -1}), i32);
  cast("i64_u8", n({4}, {256, -1, 511, least}), u8);
  cast("i64_f32", n({4}, {most, least, 16777217, -33554435}), f32);
  cast("u64_f64", n({2}, {-1, 5}, u64), f64);
  cast("i32_bool", n({3}, {0, -1, 256}, i32), boolean);
  cast("bool_f32", n({2}, {0, 1}, boolean), f32);
  cast("i8_u8", n({3}, {-1, -128, 5}, i8), u8);
  cast("u8_i8", n({3}, {255, 128, 5}, u8), i8);
  cast("f16_i32", f({3}, {65504, -2.5, 0.999}, f16), i32);
  cast("empty", some({0, 2}), i64);
  cast("i64_f16", n({3}, {65520, -70000, 2049}), f16);
  cast("f64_f16", f({4}, {65519.99, 65520, 1.00048828125000001, 6e-8}, f64), f16);
  return all;
}

}  // namespace kiln::peer
