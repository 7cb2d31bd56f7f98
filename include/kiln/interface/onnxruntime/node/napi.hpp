#pragma once
#include <cstddef>
#include <cstdint>

// Node-API as facts: the calls of node_api.h that the addon makes. They have been the same since version 3 (Node 10),
// and the process that loads the addon provides them.

extern "C" {
using napi_env = struct napi_env_object*;
using napi_value = struct napi_value_object*;
using napi_ref = struct napi_ref_object*;
using napi_deferred = struct napi_deferred_object*;
using napi_async_work = struct napi_async_work_object*;
using napi_callback_info = struct napi_callback_info_object*;
using napi_callback = napi_value (*)(napi_env, napi_callback_info);
using napi_finalize = void (*)(napi_env, void* data, void* hint);
using napi_status = int;  // 0: done
using napi_valuetype = int;
using napi_typedarray_type = int;

napi_status napi_get_cb_info(napi_env, napi_callback_info, std::size_t* count, napi_value* arguments, napi_value* self,
                             void** data);
napi_status napi_create_function(napi_env, const char* name, std::size_t length, napi_callback, void* data,
                                 napi_value*);
napi_status napi_create_object(napi_env, napi_value*);
napi_status napi_create_array_with_length(napi_env, std::size_t, napi_value*);
napi_status napi_create_arraybuffer(napi_env, std::size_t bytes, void** data, napi_value*);
napi_status napi_create_double(napi_env, double, napi_value*);
napi_status napi_create_string_utf8(napi_env, const char*, std::size_t length, napi_value*);
napi_status napi_create_external(napi_env, void* data, napi_finalize, void* hint, napi_value*);
napi_status napi_create_error(napi_env, napi_value code, napi_value message, napi_value*);
napi_status napi_get_undefined(napi_env, napi_value*);
napi_status napi_get_null(napi_env, napi_value*);
napi_status napi_set_named_property(napi_env, napi_value object, const char* name, napi_value);
napi_status napi_set_element(napi_env, napi_value array, std::uint32_t index, napi_value);
napi_status napi_get_element(napi_env, napi_value array, std::uint32_t index, napi_value*);
napi_status napi_get_array_length(napi_env, napi_value, std::uint32_t*);
napi_status napi_is_array(napi_env, napi_value, bool*);
napi_status napi_is_typedarray(napi_env, napi_value, bool*);
napi_status napi_typeof(napi_env, napi_value, napi_valuetype*);
napi_status napi_get_typedarray_info(napi_env, napi_value, napi_typedarray_type*, std::size_t* length, void** data,
                                     napi_value* buffer, std::size_t* offset);
napi_status napi_get_value_string_utf8(napi_env, napi_value, char*, std::size_t room, std::size_t* length);
napi_status napi_get_value_double(napi_env, napi_value, double*);
napi_status napi_get_value_external(napi_env, napi_value, void**);
napi_status napi_create_reference(napi_env, napi_value, std::uint32_t count, napi_ref*);
napi_status napi_delete_reference(napi_env, napi_ref);
napi_status napi_create_promise(napi_env, napi_deferred*, napi_value*);
napi_status napi_resolve_deferred(napi_env, napi_deferred, napi_value);
napi_status napi_reject_deferred(napi_env, napi_deferred, napi_value);
napi_status napi_create_async_work(napi_env, napi_value resource, napi_value name, void (*execute)(napi_env, void*),
                                   void (*complete)(napi_env, napi_status, void*), void* data, napi_async_work*);
napi_status napi_queue_async_work(napi_env, napi_async_work);
napi_status napi_delete_async_work(napi_env, napi_async_work);
napi_status napi_throw_error(napi_env, const char* code, const char* message);
napi_status napi_is_exception_pending(napi_env, bool*);
}

namespace kiln::node {

/// What typed arrays hold (napi_typedarray_type).
enum class array_kind : int { i8, u8, u8_clamped, i16, u16, i32, u32, f32, f64, i64, u64 };

/// What values are (napi_valuetype).
enum class value_kind : int { undefined, null, boolean, number, string, symbol, object, function, external, bigint };

}  // namespace kiln::node
