#include "tensorflow/bundle_writer.hpp"

// Hash tables, which become constants of the program.
namespace kiln::tensorflow {
namespace {

std::string table(const std::string& name, const std::string& keys = "DT_INT64", const std::string& values = "DT_FLOAT",
                  const std::string& shared = {}) {
  return node(name, "HashTableV2", {},
              attribute("key_dtype", "type: " + keys) + attribute("value_dtype", "type: " + values) +
                  attribute("shared_name", "s: '" + shared + "'"));
}
std::string longs(const std::string& name, const std::string& values, const std::string& extents) {
  return constant(name, "dtype: DT_INT64 tensor_shape { dim { size: " + extents + " } } int64_val: [" + values + "]");
}
std::string reals(const std::string& name, const std::string& values, const std::string& extents = "") {
  return constant(name, "dtype: DT_FLOAT tensor_shape { " + (extents.empty() ? "" : "dim { size: " + extents + " }") +
                            " } float_val: [" + values + "]");
}
argument ids(const dims& lens, const std::vector<std::int64_t>& v) {
  return argument::of<std::int64_t>(lens, std::span<const std::int64_t>(v));
}

const std::string keys = longs("keys", "7, -3, 5000000000", "3"), values = reals("values", "1.5, 2.5, 3.5", "3"),
                  otherwise = reals("otherwise", "-1"), x = placeholder("x", "-1 2", "DT_INT64"),
                  find = node("y", "LookupTableFindV2", {"table", "x", "otherwise"});

TEST(tensorflow_tables, keys_are_looked_up_among_constants) {
  for (const std::string op : {"InitializeTableV2", "InitializeTable", "LookupTableImportV2"}) {
    const std::string text = x + otherwise + table("table") + node("init", op, {"table", "keys", "values"}) + keys +
                             values + node("init_all_tables", "NoOp", {"^init"}) + find +
                             node("size", "LookupTableSizeV2", {"table"});
    const executable e = compile(parse(text).graph, eigen_target());
    ASSERT_EQ(e.outputs().size(), 2u) << op;
    const auto out = e.run(std::vector{ids({2, 2}, {5000000000, 7, 705032704, -3})});
    EXPECT_EQ(out[0].get_shape().lens, (dims{2, 2}));
    EXPECT_THAT(numbers(out[0]), ElementsAre(3.5, 1.5, -1, 2.5));
    EXPECT_THAT(numbers(out[1]), ElementsAre(3));
  }
  // numbers to numbers; the default comes from the run; nothing in the table
  const std::string counted = placeholder("n", "3", "DT_INT32") + placeholder("d", "", "DT_INT64") +
                              table("table", "DT_INT32", "DT_INT64") + integers("keys", "4, 2", "2");
  const std::string found = node("y", "LookupTableFindV2", {"table", "n", "d"});
  const std::int32_t n[] = {2, 3, 4};
  const std::vector<argument> given{argument::of<std::int32_t>({3}, std::span(n)), ids({}, {9})};
  EXPECT_THAT(numbers(run(counted + longs("values", "40, 20", "2") + found +
                              node("init", "InitializeTableV2", {"table", "keys", "values"}),
                          given)[0]),
              ElementsAre(20, 9, 40));
  EXPECT_THAT(numbers(run(counted + constant("none", "dtype: DT_INT32 tensor_shape { dim { size: 0 } }") +
                              constant("values", "dtype: DT_INT64 tensor_shape { dim { size: 0 } }") + found +
                              node("init", "InitializeTableV2", {"table", "none", "values"}),
                          given)[0]),
              ElementsAre(9, 9, 9));
}

// The handle and what is put in go through functions, and tables of one shared name are one.
TEST(tensorflow_tables, a_saved_model_initializes_its_tables_in_functions) {
  const std::string functions =
      function("creator", {}, {{"handle", "table:table_handle:0"}},
               table("table", "DT_INT64", "DT_FLOAT", "one") + table("other", "DT_INT64", "DT_FLOAT", "two")) +
      function("initializer", {"t", "k", "v"}, {{"done", "const:output:0"}},
               node("put", "LookupTableImportV2", {"t", "k", "v"}) + integers("const", "1"),
               "control_ret { key: 'put' value: 'put' }\n") +
      function("restored", {"t", "k", "v"}, {{"done", "inner:done:0"}},
               node("inner", "StatefulPartitionedCall", {"t", "k", "v"}, function_attribute("f", "initializer"))) +
      function("serve", {"ids", "t", "d"}, {{"y", "found:values:0"}},
               node("found", "LookupTableFindV2", {"t", "ids", "d"}));
  const auto call = [](const std::string& name, const std::string& f, const std::vector<std::string>& inputs) {
    return node(name, "StatefulPartitionedCall", inputs, function_attribute("f", f));
  };
  const auto made = [&](const std::string& nodes) {
    const std::string graph = x + keys + values + otherwise + nodes + call("made", "creator", {}) +
                              call("served", "serve", {"x", "made", "otherwise"}) + node("NoOp", "NoOp", {"^filled"}) +
                              library(functions);
    return saved_model_bytes(
        meta_graph("serve", graph,
                   signature_text("serving_default",
                                  "inputs { key: 'ids' value { name: 'x:0' dtype: DT_INT64 tensor_shape { dim "
                                  "{ size: -1 } dim { size: 2 } } } } " +
                                      tensor_info("outputs", "y", "served:0"))));
  };
  for (const std::string f : {"initializer", "restored"}) {
    const std::string bytes = made(call("again", "creator", {}) + node("same", "Identity", {"again"}) +
                                   call("filled", f, {"same", "keys", "values"}));
    const executable e = compile(parse(bytes).graph, eigen_target());
    EXPECT_THAT(numbers(e.run(std::vector{ids({1, 2}, {-3, 0})})[0]), ElementsAre(2.5, -1));
  }
  const std::string twice =
      made(call("filled", "initializer", {"made", "keys", "values"}) + reals("others", "1, 2, 3", "3") +
           call("refilled", "initializer", {"made", "keys", "others"}));
  EXPECT_THAT(fault(twice), AllOf(HasSubstr("node 'table' (tensorflow.HashTableV2)"),
                                  HasSubstr("its table is initialized in several ways")));
}

TEST(tensorflow_tables, other_tables_are_refused_by_name) {
  const std::string init = node("init", "InitializeTableV2", {"table", "keys", "values"}),
                    who = "node 'table' (tensorf";
  const std::string words = node("keys", "Const", {},
                                 "attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { dim { size: 1 } "
                                 "} string_val: 'a' } } }");
  EXPECT_THAT(fault(x + otherwise + values + words + table("table", "DT_STRING") + init + find),
              AllOf(HasSubstr(who), HasSubstr("integers as keys and numbers as values, this one maps string to f32")));
  EXPECT_THAT(fault(x + otherwise + keys + values + table("table", "DT_INT64", "DT_STRING") + init + find),
              AllOf(HasSubstr(who), HasSubstr("this one maps i64 to string")));
  EXPECT_THAT(fault(x + otherwise + table("table") + find),
              AllOf(HasSubstr(who), HasSubstr("the graph has no initializer of its table")));
  EXPECT_THAT(fault(x + otherwise + keys + placeholder("values", "3") + table("table") + init + find),
              AllOf(HasSubstr(who), HasSubstr("what is put in its table is no constant")));
  EXPECT_THAT(fault(x + otherwise + words + table("table") + find +
                    node("init", "InitializeTableFromTextFileV2", {"table", "keys"})),
              AllOf(HasSubstr(who), HasSubstr("what is in its table is in a text file")));
  EXPECT_THAT(fault(x + otherwise + keys + reals("values", "1, 2", "2") + table("table") + init + find),
              AllOf(HasSubstr(who), HasSubstr("there is a value for each key, found 3 keys and 2 values")));
  EXPECT_THAT(fault(x + otherwise + keys + values + table("table", "DT_INT32") + init + find),
              AllOf(HasSubstr(who), HasSubstr("the table's keys are i32, it is initialized with i64[3]")));
  EXPECT_THAT(fault(placeholder("x", "2", "DT_INT32") + otherwise + keys + values + table("table") + init + find),
              HasSubstr("the table maps i64 to f32, found i32[2] to look up and f32[] as the default"));
  EXPECT_THAT(fault(x + reals("otherwise", "1, 2", "2") + keys + values + table("table") + init + find),
              HasSubstr("its default is no scalar"));
  EXPECT_THAT(fault(x + otherwise + node("y", "LookupTableFindV2", {"x", "x", "otherwise"})),
              HasSubstr("input 0 is no table that the graph makes and initializes"));
  const std::string insert =
      function("f", {"t", "k", "v"}, {{"b", "c:y:0"}},
               node("put", "LookupTableInsertV2", {"t", "k", "v"}) + node("c", "Neg", {"v", "^put"}));
  EXPECT_THAT(
      fault(keys + values + table("table") + init + node("y", "f", {"table", "keys", "values"}) + library(insert)),
      HasSubstr("node 'put' (LookupTableInsertV2) of function 'f': writes a variable or table"));
}

}  // namespace
}  // namespace kiln::tensorflow
