/* The types of MIGraphX's interface for C. */
#ifndef MIGRAPHX_GUARD_C_API_TYPES_H
#define MIGRAPHX_GUARD_C_API_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef MIGRAPHX_C_EXPORT
#define MIGRAPHX_C_EXPORT __attribute__((visibility("default")))
#endif

/* Element types, each with the C++ type of an element. */
#define MIGRAPHX_SHAPE_VISIT_TYPES(m)                                                                      \
  m(bool_type, bool) m(half_type, half) m(float_type, float) m(double_type, double) m(uint8_type, uint8_t) \
      m(int8_type, int8_t) m(uint16_type, uint16_t) m(int16_type, int16_t) m(int32_type, int32_t)          \
          m(int64_type, int64_t) m(uint32_type, uint32_t) m(uint64_type, uint64_t)                         \
              m(fp8e4m3fnuz_type, migraphx::fp8::fp8e4m3fnuz) m(fp8e4m3fn_type, migraphx::fp8::fp8e4m3fn)  \
                  m(fp8e5m2_type, migraphx::fp8::fp8e5m2) m(bf16_type, bf16)                               \
                      m(fp8e5m2fnuz_type, migraphx::fp8::fp8e5m2fnuz)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  migraphx_status_success = 0,
  migraphx_status_bad_param = 1,
  migraphx_status_unknown_target = 3,
  migraphx_status_unknown_error = 4
} migraphx_status;

typedef enum {
  migraphx_compile_mode_eager = 0,
  migraphx_compile_mode_balanced = 50,
  migraphx_compile_mode_max = 100
} migraphx_compile_mode;

#define MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES(x, t) migraphx_shape_##x,
typedef enum {
  migraphx_shape_tuple_type,
  migraphx_shape_fp4x2_type,
  MIGRAPHX_SHAPE_VISIT_TYPES(MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES)
} migraphx_shape_datatype_t;
#undef MIGRAPHX_SHAPE_GENERATE_ENUM_TYPES

typedef struct migraphx_optimals* migraphx_optimals_t;
typedef const struct migraphx_optimals* const_migraphx_optimals_t;
typedef struct migraphx_dynamic_dimension* migraphx_dynamic_dimension_t;
typedef const struct migraphx_dynamic_dimension* const_migraphx_dynamic_dimension_t;
typedef struct migraphx_dynamic_dimensions* migraphx_dynamic_dimensions_t;
typedef const struct migraphx_dynamic_dimensions* const_migraphx_dynamic_dimensions_t;
typedef struct migraphx_shape* migraphx_shape_t;
typedef const struct migraphx_shape* const_migraphx_shape_t;
typedef struct migraphx_argument* migraphx_argument_t;
typedef const struct migraphx_argument* const_migraphx_argument_t;
typedef struct migraphx_target* migraphx_target_t;
typedef const struct migraphx_target* const_migraphx_target_t;
typedef struct migraphx_program_parameter_shapes* migraphx_program_parameter_shapes_t;
typedef const struct migraphx_program_parameter_shapes* const_migraphx_program_parameter_shapes_t;
typedef struct migraphx_program_parameters* migraphx_program_parameters_t;
typedef const struct migraphx_program_parameters* const_migraphx_program_parameters_t;
typedef struct migraphx_arguments* migraphx_arguments_t;
typedef const struct migraphx_arguments* const_migraphx_arguments_t;
typedef struct migraphx_shapes* migraphx_shapes_t;
typedef const struct migraphx_shapes* const_migraphx_shapes_t;
typedef struct migraphx_instruction* migraphx_instruction_t;
typedef const struct migraphx_instruction* const_migraphx_instruction_t;
typedef struct migraphx_instructions* migraphx_instructions_t;
typedef const struct migraphx_instructions* const_migraphx_instructions_t;
typedef struct migraphx_modules* migraphx_modules_t;
typedef const struct migraphx_modules* const_migraphx_modules_t;
typedef struct migraphx_module* migraphx_module_t;
typedef const struct migraphx_module* const_migraphx_module_t;
typedef struct migraphx_operation* migraphx_operation_t;
typedef const struct migraphx_operation* const_migraphx_operation_t;
typedef struct migraphx_trace_info* migraphx_trace_info_t;
typedef const struct migraphx_trace_info* const_migraphx_trace_info_t;
typedef struct migraphx_program* migraphx_program_t;
typedef const struct migraphx_program* const_migraphx_program_t;
typedef struct migraphx_compile_options* migraphx_compile_options_t;
typedef const struct migraphx_compile_options* const_migraphx_compile_options_t;
typedef struct migraphx_context* migraphx_context_t;
typedef const struct migraphx_context* const_migraphx_context_t;
typedef struct migraphx_file_options* migraphx_file_options_t;
typedef const struct migraphx_file_options* const_migraphx_file_options_t;
typedef struct migraphx_onnx_options* migraphx_onnx_options_t;
typedef const struct migraphx_onnx_options* const_migraphx_onnx_options_t;
typedef struct migraphx_tf_options* migraphx_tf_options_t;
typedef const struct migraphx_tf_options* const_migraphx_tf_options_t;
typedef struct migraphx_quantize_op_names* migraphx_quantize_op_names_t;
typedef const struct migraphx_quantize_op_names* const_migraphx_quantize_op_names_t;
typedef struct migraphx_quantize_int8_options* migraphx_quantize_int8_options_t;
typedef const struct migraphx_quantize_int8_options* const_migraphx_quantize_int8_options_t;
typedef struct migraphx_quantize_fp8_options* migraphx_quantize_fp8_options_t;
typedef const struct migraphx_quantize_fp8_options* const_migraphx_quantize_fp8_options_t;
typedef struct migraphx_experimental_custom_op* migraphx_experimental_custom_op_t;
typedef const struct migraphx_experimental_custom_op* const_migraphx_experimental_custom_op_t;

/* What a caller gives: called for each step of a traced run, and the functions of an operator of its own. A function
 * that fails returns another status than success, with its message in exception_msg. */
typedef migraphx_status (*migraphx_trace_callback_t)(migraphx_trace_info_t info, void* data);
typedef migraphx_status (*migraphx_experimental_custom_op_compute)(migraphx_argument_t out, void* obj,
                                                                   char* exception_msg, size_t exception_msg_size,
                                                                   migraphx_context_t ctx, migraphx_shape_t output,
                                                                   migraphx_arguments_t inputs);
typedef migraphx_status (*migraphx_experimental_custom_op_compute_shape)(migraphx_shape_t out, void* obj,
                                                                         char* exception_msg, size_t exception_msg_size,
                                                                         migraphx_shapes_t inputs);
typedef migraphx_status (*migraphx_experimental_custom_op_output_alias)(size_t* out, size_t* out_size, void* obj,
                                                                        char* exception_msg, size_t exception_msg_size,
                                                                        migraphx_shapes_t inputs);
typedef migraphx_status (*migraphx_experimental_custom_op_runs_on_offload_target)(bool* out, void* obj,
                                                                                  char* exception_msg,
                                                                                  size_t exception_msg_size);
typedef migraphx_status (*migraphx_experimental_custom_op_copy)(void** out, void* input);
typedef migraphx_status (*migraphx_experimental_custom_op_delete)(void* input);

#ifdef __cplusplus
}
#endif

#endif
