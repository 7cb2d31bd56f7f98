#pragma once
#include <cstdint>
#include <span>
#include <string_view>

// The fields of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor.proto, function.proto, op_def.proto,
// saved_model.proto and meta_graph.proto that a text may have for kiln to read. Others are passed over.
namespace kiln::tensorflow::text_form {

enum class kind : std::uint8_t { integer, flag, type, f32, f64, bytes, message };

struct description;
struct field {
  std::string_view name;
  std::uint64_t number;
  kind is;
  const description* message = nullptr;
};
struct description {
  std::span<const field> fields;
};

extern const description attribute_message;

constexpr field dim_fields[] = {{"size", 1, kind::integer}, {"name", 2, kind::bytes}};
constexpr description dim_message{dim_fields};
constexpr field shape_fields[] = {{"dim", 2, kind::message, &dim_message}, {"unknown_rank", 3, kind::flag}};
constexpr description shape_message{shape_fields};
constexpr field tensor_fields[] = {
    {"dtype", 1, kind::type},
    {"tensor_shape", 2, kind::message, &shape_message},
    {"version_number", 3, kind::integer},
    {"tensor_content", 4, kind::bytes},
    {"float_val", 5, kind::f32},
    {"double_val", 6, kind::f64},
    {"int_val", 7, kind::integer},
    {"string_val", 8, kind::bytes},
    {"scomplex_val", 9, kind::f32},
    {"int64_val", 10, kind::integer},
    {"bool_val", 11, kind::flag},
    {"dcomplex_val", 12, kind::f64},
    {"half_val", 13, kind::integer},
    {"uint32_val", 16, kind::integer},
    {"uint64_val", 17, kind::integer},
    {"float8_val", 18, kind::bytes},
};
constexpr description tensor_message{tensor_fields};
constexpr field entry_fields[] = {{"key", 1, kind::bytes}, {"value", 2, kind::message, &attribute_message}};
constexpr description entry_message{entry_fields};
constexpr field function_name_fields[] = {{"name", 1, kind::bytes}, {"attr", 2, kind::message, &entry_message}};
constexpr description function_name_message{function_name_fields};
constexpr field list_fields[] = {
    {"s", 2, kind::bytes},
    {"i", 3, kind::integer},
    {"f", 4, kind::f32},
    {"b", 5, kind::flag},
    {"type", 6, kind::type},
    {"shape", 7, kind::message, &shape_message},
    {"tensor", 8, kind::message, &tensor_message},
    {"func", 9, kind::message, &function_name_message},
};
constexpr description list_message{list_fields};
constexpr field attribute_fields[] = {
    {"list", 1, kind::message, &list_message},
    {"s", 2, kind::bytes},
    {"i", 3, kind::integer},
    {"f", 4, kind::f32},
    {"b", 5, kind::flag},
    {"type", 6, kind::type},
    {"shape", 7, kind::message, &shape_message},
    {"tensor", 8, kind::message, &tensor_message},
    {"placeholder", 9, kind::bytes},
    {"func", 10, kind::message, &function_name_message},
};
const description attribute_message{attribute_fields};
constexpr field node_fields[] = {
    {"name", 1, kind::bytes},
    {"op", 2, kind::bytes},
    {"input", 3, kind::bytes},
    {"device", 4, kind::bytes},
    {"attr", 5, kind::message, &entry_message},
};
constexpr description node_message{node_fields};
constexpr field argument_fields[] = {
    {"name", 1, kind::bytes},           {"type", 3, kind::type},
    {"type_attr", 4, kind::bytes},      {"number_attr", 5, kind::bytes},
    {"type_list_attr", 6, kind::bytes},
};
constexpr description argument_message{argument_fields};
constexpr field attribute_def_fields[] = {
    {"name", 1, kind::bytes}, {"type", 2, kind::bytes}, {"default_value", 3, kind::message, &attribute_message}};
constexpr description attribute_def_message{attribute_def_fields};
constexpr field signature_fields[] = {
    {"name", 1, kind::bytes},
    {"input_arg", 2, kind::message, &argument_message},
    {"output_arg", 3, kind::message, &argument_message},
    {"attr", 4, kind::message, &attribute_def_message},
    {"control_output", 20, kind::bytes},
};
constexpr description signature_message{signature_fields};
constexpr field name_fields[] = {{"key", 1, kind::bytes}, {"value", 2, kind::bytes}};
constexpr description name_message{name_fields};
constexpr field function_fields[] = {
    {"signature", 1, kind::message, &signature_message},
    {"node_def", 3, kind::message, &node_message},
    {"ret", 4, kind::message, &name_message},
    {"attr", 5, kind::message, &entry_message},
    {"control_ret", 6, kind::message, &name_message},
};
constexpr description function_message{function_fields};
constexpr field library_fields[] = {{"function", 1, kind::message, &function_message}};
constexpr description library_message{library_fields};
constexpr field graph_fields[] = {{"node", 1, kind::message, &node_message},
                                  {"library", 2, kind::message, &library_message}};
constexpr description graph_message{graph_fields};

constexpr field sparse_fields[] = {{"values_tensor_name", 1, kind::bytes}};  // of which only that it is there matters
constexpr description sparse_message{sparse_fields};
constexpr field tensor_info_fields[] = {{"name", 1, kind::bytes},
                                        {"dtype", 2, kind::type},
                                        {"tensor_shape", 3, kind::message, &shape_message},
                                        {"coo_sparse", 4, kind::message, &sparse_message},
                                        {"composite_tensor", 5, kind::message, &sparse_message}};
constexpr description tensor_info_message{tensor_info_fields};
constexpr field tensor_entry_fields[] = {{"key", 1, kind::bytes}, {"value", 2, kind::message, &tensor_info_message}};
constexpr description tensor_entry_message{tensor_entry_fields};
constexpr field signature_def_fields[] = {
    {"inputs", 1, kind::message, &tensor_entry_message},
    {"outputs", 2, kind::message, &tensor_entry_message},
    {"method_name", 3, kind::bytes},
};
constexpr description signature_def_message{signature_def_fields};
constexpr field signature_entry_fields[] = {{"key", 1, kind::bytes},
                                            {"value", 2, kind::message, &signature_def_message}};
constexpr description signature_entry_message{signature_entry_fields};
constexpr field meta_info_fields[] = {{"tags", 4, kind::bytes}, {"tensorflow_version", 5, kind::bytes}};
constexpr description meta_info_message{meta_info_fields};
constexpr field saver_fields[] = {{"filename_tensor_name", 1, kind::bytes},
                                  {"save_tensor_name", 2, kind::bytes},
                                  {"restore_op_name", 3, kind::bytes}};
constexpr description saver_message{saver_fields};
constexpr field meta_graph_fields[] = {
    {"meta_info_def", 1, kind::message, &meta_info_message},
    {"graph_def", 2, kind::message, &graph_message},
    {"saver_def", 3, kind::message, &saver_message},
    {"signature_def", 5, kind::message, &signature_entry_message},
};
constexpr description meta_graph_message{meta_graph_fields};
constexpr field saved_model_fields[] = {{"saved_model_schema_version", 1, kind::integer},
                                        {"meta_graphs", 2, kind::message, &meta_graph_message}};
constexpr description saved_model_message{saved_model_fields};

}  // namespace kiln::tensorflow::text_form
