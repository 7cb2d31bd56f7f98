#include <random>

#include "kiln/tensorflow/impl/bundle/table.hpp"
#include "kiln/tensorflow/impl/bundle/tensor_bundle.hpp"
#include "tensorflow/bundle_writer.hpp"

namespace kiln::tensorflow {
namespace {

std::vector<double> dense_of(const std::string& path, const import_options& how = {}) {
  return numbers(
      compile(read_any_model(path, how).graph, eigen_target()).run(std::vector{floats({2, 2}, {1, 2, 3, 4})})[0]);
}
const std::vector<double> dense_result{19, 32, 45, 29, 46, 63};

TEST(tensorflow_saved_model, variables_are_read_from_the_folder) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xe3069283u);
  const test::temporary_folder folder;
  for (const bool compressed : {false, true}) {
    dense_variables().write(folder.path(), compressed);
    folder.write("saved_model.pb", saved_model_bytes(meta_graph("serve", dense_graph(), dense_signature())));
    const std::string why = message_of([&] { read_model(folder.path().string()); });
    if (compressed && why.find("built without libsnappy") != std::string::npos) continue;
    EXPECT_EQ(dense_of(folder.path().string()), dense_result);
    EXPECT_EQ(dense_of((folder.path() / "saved_model.pb").string()), dense_result);
  }
  const test::temporary_folder text;
  dense_variables().write(text.path());
  text.write("saved_model.pbtxt", saved_model_text(meta_graph("serve", dense_graph(), dense_signature())));
  EXPECT_EQ(dense_of(text.path().string()), dense_result);
  // in memory, with the folder that its variables are in
  const std::string bytes = saved_model_bytes(meta_graph("serve", dense_graph(), dense_signature()));
  const auto made = [&](const std::string& directory) {
    return parse_any_model(std::as_bytes(std::span(bytes)), directory, {});
  };
  EXPECT_EQ(
      numbers(
          compile(made(text.path().string()).graph, eigen_target()).run(std::vector{floats({2, 2}, {1, 2, 3, 4})})[0]),
      dense_result);
  EXPECT_THAT(message_of([&] { made("/nowhere"); }), HasSubstr("VarHandleOp"));
}

// A sparse tensor matters in the signature that is imported.
TEST(tensorflow_saved_model, sparse_tensors_of_other_signatures_do_not_matter) {
  const std::string sparse = signature_text(
      "train", "inputs { key: 'ids' value { dtype: DT_FLOAT coo_sparse { values_tensor_name: 'v:0' } } } " +
                   tensor_info("outputs", "y", "StatefulPartitionedCall:0"));
  const std::string bytes = saved_model_bytes(meta_graph("serve", dense_graph(), dense_signature() + sparse));
  const test::temporary_folder folder;
  dense_variables().write(folder.path());
  folder.write("saved_model.pb", bytes);
  EXPECT_EQ(dense_of(folder.path().string()), dense_result);
  for (const auto& why : {message_of([&] { read_model(folder.path().string(), {.signature = "train"}); }),
                          message_of([&] { any_model_inputs(folder.path().string(), {.signature = "train"}); })})
    EXPECT_THAT(why, HasSubstr("signature 'train', tensor 'ids': is sparse, or of several tensors"));
}

TEST(tensorflow_saved_model, names_are_those_of_the_signature) {
  const test::temporary_folder folder;
  dense_variables().write(folder.path());
  const std::string other = signature_text("sums", tensor_info("inputs", "x", "serving_default_x:0", "5 2") +
                                                       tensor_info("outputs", "x", "StatefulPartitionedCall:0") +
                                                       tensor_info("outputs", "a", "serving_default_x:0"));
  const std::string init =
      signature_text("__saved_model_init_op", tensor_info("outputs", "__saved_model_init_op", "NoOp"));
  folder.write("saved_model.pb",
               saved_model_bytes(meta_graph("train", "", "") +
                                 meta_graph("serve", dense_graph(), dense_signature() + other + init) +
                                 meta_graph("tpu", dense_graph(), dense_signature("only"))));
  const std::string path = folder.path().string();
  const executable e = compile(read_model(path).graph, eigen_target());
  ASSERT_EQ(e.inputs().size(), 1u);
  EXPECT_EQ(e.inputs()[0].name, "x");
  EXPECT_EQ(e.outputs()[0].name, "output_0");
  EXPECT_EQ(any_model_inputs(path)[0].name, "x");
  EXPECT_EQ(read_model(path, {.open_extent = 4}).graph.main().parameters().size(), 1u);
  const executable sums = compile(read_model(path, {.signature = "sums"}).graph, eigen_target());
  EXPECT_EQ(sums.inputs()[0].type.lens, (dims{5, 2}));
  ASSERT_EQ(sums.outputs().size(), 2u);
  EXPECT_EQ(sums.outputs()[0].name, "a");
  EXPECT_EQ(sums.outputs()[1].name, "x:output");
  EXPECT_EQ(any_model_inputs(path, {.signature = "sums"})[0].dims[0].value, 5);
  EXPECT_EQ(dense_of(path, {.tag = "tpu"}), dense_result);
  const executable one =
      compile(read_model(path, {.outputs = {"StatefulPartitionedCall", "output_0"}}).graph, eigen_target());
  EXPECT_EQ(one.outputs()[0].name, "StatefulPartitionedCall");
  const auto why = [&](const import_options& how) { return message_of([&] { read_model(path, how); }); };
  EXPECT_THAT(why({.signature = "none"}),
              HasSubstr("no signature 'none', but 'serving_default', 'sums', '__saved_model_init_op'"));
  EXPECT_THAT(why({.tag = "gpu"}), HasSubstr("no graph with tag 'gpu', but with 'train', 'serve', 'tpu'"));
  EXPECT_THAT(why({.tag = "train"}), HasSubstr("which signature"));
  EXPECT_THAT(why({.outputs = {"nothing"}}), HasSubstr("no node gives its input 'nothing'"));
}

// The graph of TensorFlow 1: variables by their names, or by the assignments of the graph, or by the objects of a
// checkpoint.
TEST(tensorflow_saved_model, variables_are_found_by_name_assignment_or_object) {
  const std::string type = attribute("dtype", "type: DT_FLOAT");
  const std::string graph = placeholder("x", "2") + node("w", "VariableV2", {}, type) +
                            node("w/read", "Identity", {"w"}) + node("y", "Mul", {"x", "w/read"}) +
                            node("init", "Assign", {"w", "x"});
  const std::string strings =
      "attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: ";
  const std::string restored =
      node("names", "Const", {}, strings + "'stored' } } }") + node("parts", "Const", {}, strings + "'' } } }") +
      node("file", "Const", {}, strings + "'' } } }") + node("restore", "RestoreV2", {"file", "names", "parts"}) +
      node("assign", "Assign", {"w", "restore"});
  const std::string signature =
      signature_text("predict", tensor_info("inputs", "in", "x:0", "2") + tensor_info("outputs", "out", "y:0"));
  const auto made = [&](const std::string& text, const bundle_writer& w) {
    const test::temporary_folder folder;
    w.write(folder.path());
    folder.write("saved_model.pb", saved_model_bytes(meta_graph("serve", text, signature)));
    return numbers(
        compile(read_model(folder.path().string()).graph, eigen_target()).run(std::vector{floats({2}, {1, 2})})[0]);
  };
  bundle_writer named;
  named.add("w", {2}, {3, 4});
  EXPECT_THAT(made(graph, named), ElementsAre(3, 8));
  named.add("stored", {2}, {5, 6});
  EXPECT_THAT(made(graph + restored, named), ElementsAre(5, 12));
  bundle_writer object;
  object.add("model/w/.ATTRIBUTES/VARIABLE_VALUE", {2}, {7, 8});
  std::string attribute_text, nodes, all;
  append_field(attribute_text, 1, std::string_view("VARIABLE_VALUE"));
  append_field(attribute_text, 2, std::string_view("w"));
  append_field(attribute_text, 3, std::string_view("model/w/.ATTRIBUTES/VARIABLE_VALUE"));
  append_field(nodes, 2, attribute_text);
  append_field(all, 1, nodes);
  object.add_text("_CHECKPOINTABLE_OBJECT_GRAPH", all);
  EXPECT_THAT(made(graph, object), ElementsAre(7, 16));
  for (const std::size_t at : {std::size_t{1}, object.data[0].size() - 1 - 8}) {  // the length's checksum, the text
    bundle_writer damaged = object;
    damaged.data[0][at + 8] ^= 1;  // after the variable
    EXPECT_THAT(message_of([&] { made(graph, damaged); }),
                HasSubstr("tensor '_CHECKPOINTABLE_OBJECT_GRAPH' is damaged"));
  }
  bundle_writer listed = object;
  std::string& entry = listed.entries["_CHECKPOINTABLE_OBJECT_GRAPH"];
  const std::string scalar = bundle_writer::entry_of(7, {}), list = bundle_writer::entry_of(7, {1});
  entry = list + entry.substr(scalar.size());
  EXPECT_THAT(message_of([&] { made(graph, listed); }), HasSubstr("has 1 dims, a text has none"));
  EXPECT_THAT(message_of([&] { made(graph, bundle_writer()); }),
              HasSubstr("node 'w' (VariableV2): the checkpoint has no tensor 'w'"));
}

TEST(tensorflow_saved_model, slices_are_joined) {
  // rows 0-1 and 2 of a [3, 2], the second one by all columns from 0 on; keys as the checkpoint orders them
  const auto slice = [](std::int64_t start, std::int64_t length) {
    std::string rows, columns, out;
    append_field(rows, 1, static_cast<std::uint64_t>(start));
    append_field(rows, 2, static_cast<std::uint64_t>(length));
    append_field(out, 1, rows);
    append_field(out, 1, columns);
    return out;
  };
  // number 0, name, number of axes, then start and length of each: one byte of 0x80 xor the number
  const auto key = [](int start, int length) {
    std::string out("\0w\0\1\1\2", 6);
    for (const int v : {start, length, 0, -1}) out += static_cast<char>(0x80 ^ (v & 255));
    return out;
  };
  bundle_writer w;
  std::string whole = bundle_writer::entry_of(1, {3, 2});
  append_field(whole, 7, slice(0, 2));
  append_field(whole, 7, slice(2, 1));
  w.entries["w"] = whole;
  w.add(key(0, 2), {2, 2}, {1, 2, 3, 4});
  w.add(key(2, 1), {1, 2}, {5, 6}, 1);
  const test::temporary_folder folder;
  w.write(folder.path());
  tensor_bundle bundle((folder.path() / "variables/variables").string());
  const auto v = bundle.read("w").value.to<float>();
  EXPECT_EQ(std::vector<float>(v.begin(), v.end()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  w.entries.erase(key(2, 1));
  w.write(folder.path());
  tensor_bundle less((folder.path() / "variables/variables").string());
  EXPECT_THAT(message_of([&] { less.read("w"); }), HasSubstr("tensor 'w': one of its slices is not there"));
  // as many elements, but some twice and others never
  for (const auto& [start, length] : {std::pair(1, 1), std::pair(0, 1)}) {
    whole = bundle_writer::entry_of(1, {3, 2});
    append_field(whole, 7, slice(0, 2));
    append_field(whole, 7, slice(start, length));
    w.entries["w"] = whole;
    w.add(key(start, length), {1, 2}, {5, 6}, 1);
    w.write(folder.path());
    tensor_bundle twice((folder.path() / "variables/variables").string());
    EXPECT_THAT(message_of([&] { twice.read("w"); }),
                HasSubstr("tensor 'w': two of its slices have the same elements"));
  }
}

TEST(tensorflow_saved_model, damaged_checkpoints_name_file_and_tensor) {
  const test::temporary_folder folder;
  const bundle_writer good = dense_variables();
  folder.write("saved_model.pb", saved_model_bytes(meta_graph("serve", dense_graph(), dense_signature())));
  const auto why = [&](const bundle_writer& w) {
    w.write(folder.path());
    return message_of([&] { read_model(folder.path().string()); });
  };
  EXPECT_EQ(why(good), "no error");
  bundle_writer bad = good;
  bad.data[1][2] ^= 1;
  EXPECT_THAT(why(bad), ::testing::AllOf(HasSubstr("tensor 'layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE' is damaged"),
                                         HasSubstr("variables.data-00001-of-00002")));
  bad = good;
  bad.data[1].resize(8);
  EXPECT_THAT(why(bad), HasSubstr("is 12 bytes at 0, the file has 8"));
  bad = good;
  bad.entries.erase("layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_THAT(
      why(bad),
      HasSubstr(
          "node 'dense/bias' (VarHandleOp): the checkpoint has no tensor 'layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE'"));
  bad = good;
  bad.entries["layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE"] = bundle_writer::entry_of(1, {std::int64_t{1} << 60, 1 << 20});
  EXPECT_THAT(why(bad), HasSubstr("has an extent of"));
  bad.entries["layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE"] = bundle_writer::entry_of(1, {4});
  EXPECT_THAT(why(bad), HasSubstr("has 0 bytes, its shape f32[4] 16"));
  bad.entries["layer-0/bias/.ATTRIBUTES/VARIABLE_VALUE"] = bundle_writer::entry_of(7, {});
  EXPECT_THAT(why(bad), HasSubstr("is of DT_STRING"));
  good.write(folder.path());
  std::filesystem::remove(folder.path() / "variables/variables.data-00000-of-00002");
  EXPECT_THAT(message_of([&] { read_model(folder.path().string()); }), HasSubstr("variables.data-00000-of-00002"));
  std::filesystem::remove(folder.path() / "variables/variables.index");
  EXPECT_THAT(message_of([&] { read_model(folder.path().string()); }),
              HasSubstr("node 'dense/bias' (tensorflow.VarHandleOp)"));
}

TEST(tensorflow_saved_model, damaged_tables_give_errors) {
  const std::string whole = table_of(dense_variables().entries);
  EXPECT_EQ(read_table(std::as_bytes(std::span(whole))), dense_variables().entries);
  const auto why = [](const std::string& bytes) {
    return message_of([&] { read_table(std::as_bytes(std::span(bytes))); });
  };
  std::string bad = whole;
  bad[3] ^= 4;
  EXPECT_THAT(why(bad), HasSubstr("the checksum of the block at 0 differs"));
  EXPECT_THAT(why(whole.substr(1)), HasSubstr("the table has a block at"));
  EXPECT_THAT(why(whole.substr(0, 40)), HasSubstr("40 bytes"));
  EXPECT_THAT(why(whole + "x"), HasSubstr("does not end as a table does"));
  EXPECT_THAT(why(std::string(200, '\0') + whole.substr(whole.size() - 48)), HasSubstr("the table "));
  std::mt19937 draw(5);
  int faults = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (unsigned k = 0; k <= draw() % 3; ++k) bytes[draw() % bytes.size()] ^= static_cast<char>(1 + draw() % 255);
    faults += why(bytes) != "no error";
  }
  EXPECT_GT(faults, 2750);  // all but the padding of the end, and what cancels out
}

}  // namespace
}  // namespace kiln::tensorflow
