#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

static_assert(migraphx_shape_bool_type == static_cast<int>(type_t::bool_type) &&
              migraphx_shape_bf16_type == static_cast<int>(type_t::bf16_type) &&
              migraphx_shape_fp8e5m2fnuz_type + 1 == static_cast<int>(type_count));

namespace {

void put_list(const std::vector<std::size_t>& list, const std::size_t** out, std::size_t* size) {
  given(out, "the place of the list") = list.data();
  given(size, "the place of its size") = list.size();
}

}  // namespace

migraphx_status migraphx_optimals_destroy(migraphx_optimals_t optimals) { return destroyed(optimals); }
migraphx_status migraphx_optimals_assign_to(migraphx_optimals_t output, const_migraphx_optimals_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_optimals_create(migraphx_optimals_t* optimals, const size_t* ptr, size_t size) {
  return made(optimals, [&] {
    const auto values = given_array(ptr, size, "ptr");
    return std::set<std::size_t>(values.begin(), values.end());
  });
}

migraphx_status migraphx_dynamic_dimension_destroy(migraphx_dynamic_dimension_t dynamic_dimension) {
  return destroyed(dynamic_dimension);
}
migraphx_status migraphx_dynamic_dimension_assign_to(migraphx_dynamic_dimension_t output,
                                                     const_migraphx_dynamic_dimension_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_dynamic_dimension_create_min_max(migraphx_dynamic_dimension_t* out, size_t min, size_t max) {
  return made(out, [&] { return checked_range({min, max, {}}); });
}
migraphx_status migraphx_dynamic_dimension_create_min_max_optimals(migraphx_dynamic_dimension_t* out, size_t min,
                                                                   size_t max, migraphx_optimals_t optimals) {
  return made(out, [&] { return checked_range({min, max, object(optimals, "optimals")}); });
}
migraphx_status migraphx_dynamic_dimension_is_fixed(bool* out, const_migraphx_dynamic_dimension_t dynamic_dimension) {
  return told(out, [&] { return object(dynamic_dimension, "dynamic_dimension").is_fixed(); });
}
migraphx_status migraphx_dynamic_dimension_equal(bool* out, const_migraphx_dynamic_dimension_t dynamic_dimension,
                                                 const_migraphx_dynamic_dimension_t x) {
  return told(out, [&] { return object(dynamic_dimension, "dynamic_dimension") == object(x, "x"); });
}

migraphx_status migraphx_dynamic_dimensions_destroy(migraphx_dynamic_dimensions_t dynamic_dimensions) {
  return destroyed(dynamic_dimensions);
}
migraphx_status migraphx_dynamic_dimensions_assign_to(migraphx_dynamic_dimensions_t output,
                                                      const_migraphx_dynamic_dimensions_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_dynamic_dimensions_create(migraphx_dynamic_dimensions_t* out,
                                                   const const_migraphx_dynamic_dimension_t* ptr, size_t size) {
  return made(out, [&] {
    std::vector<dynamic_dimension> all;
    for (const const_migraphx_dynamic_dimension_t d : given_array(ptr, size, "ptr"))
      all.push_back(object(d, "a dynamic dimension"));
    return all;
  });
}
migraphx_status migraphx_dynamic_dimensions_size(size_t* out, migraphx_dynamic_dimensions_t dynamic_dimensions) {
  return told(out, [&] { return object(dynamic_dimensions, "dynamic_dimensions").size(); });
}
migraphx_status migraphx_dynamic_dimensions_get(const_migraphx_dynamic_dimension_t* out,
                                                migraphx_dynamic_dimensions_t dynamic_dimensions, size_t idx) {
  return told(
      out, [&] { return element<migraphx_dynamic_dimension>(object(dynamic_dimensions, "dynamic_dimensions"), idx); });
}

migraphx_status migraphx_shape_destroy(migraphx_shape_t shape) { return destroyed(shape); }
migraphx_status migraphx_shape_assign_to(migraphx_shape_t output, const_migraphx_shape_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_shape_create(migraphx_shape_t* out, migraphx_shape_datatype_t type, size_t* lengths,
                                      size_t lengths_size) {
  return made(out, [&] { return shape(type_from(type), list_from(lengths, lengths_size, "lengths")); });
}
migraphx_status migraphx_shape_create_with_strides(migraphx_shape_t* out, migraphx_shape_datatype_t type,
                                                   size_t* lengths, size_t lengths_size, size_t* strides,
                                                   size_t strides_size) {
  return made(out, [&] {
    return shape(type_from(type), list_from(lengths, lengths_size, "lengths"),
                 list_from(strides, strides_size, "strides"));
  });
}
migraphx_status migraphx_shape_create_scalar(migraphx_shape_t* out, migraphx_shape_datatype_t type) {
  return made(out, [&] { return shape(type_from(type)); });
}
migraphx_status migraphx_shape_create_dynamic(migraphx_shape_t* out, migraphx_shape_datatype_t type,
                                              migraphx_dynamic_dimensions_t dims) {
  return made(out, [&] { return shape(type_from(type), object(dims, "dims")); });
}
migraphx_status migraphx_shape_lengths(const size_t** out, size_t* out_size, const_migraphx_shape_t shape) {
  return guarded([&] { put_list(object(shape, "shape").lens(), out, out_size); });
}
migraphx_status migraphx_shape_strides(const size_t** out, size_t* out_size, const_migraphx_shape_t shape) {
  return guarded([&] { put_list(object(shape, "shape").strides(), out, out_size); });
}
migraphx_status migraphx_shape_dyn_dims(migraphx_dynamic_dimensions_t* out, const_migraphx_shape_t shape) {
  return made(out, [&] { return object(shape, "shape").dyn_dims(); });
}
migraphx_status migraphx_shape_type(migraphx_shape_datatype_t* out, const_migraphx_shape_t shape) {
  return told(out, [&] { return object(shape, "shape").type(); });
}
migraphx_status migraphx_shape_elements(size_t* out, const_migraphx_shape_t shape) {
  return told(out, [&] { return object(shape, "shape").elements(); });
}
migraphx_status migraphx_shape_bytes(size_t* out, const_migraphx_shape_t shape) {
  return told(out, [&] { return object(shape, "shape").bytes(); });
}
migraphx_status migraphx_shape_ndim(size_t* out, const_migraphx_shape_t shape) {
  return told(out, [&] { return object(shape, "shape").ndim(); });
}
migraphx_status migraphx_shape_equal(bool* out, const_migraphx_shape_t shape, const_migraphx_shape_t x) {
  return told(out, [&] { return object(shape, "shape") == object(x, "x"); });
}
migraphx_status migraphx_shape_standard(bool* out, const_migraphx_shape_t shape) {
  return told(out, [&] { return object(shape, "shape").standard(); });
}
migraphx_status migraphx_shape_dynamic(bool* out, const_migraphx_shape_t shape) {
  return told(out, [&] { return object(shape, "shape").dynamic(); });
}
migraphx_status migraphx_shape_index(size_t* out, const_migraphx_shape_t shape, size_t i) {
  return told(out, [&] { return object(shape, "shape").index(i); });
}
