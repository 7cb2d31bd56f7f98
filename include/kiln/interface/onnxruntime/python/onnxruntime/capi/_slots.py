"""ONNX Runtime's C interface as facts: where each function stands in its table, what it returns and takes.

Tables are append-only, so that a slot never changes (API version 24, in 1.24 and later). Letters of a signature: s status,
v nothing, p pointer, i int, u uint32, z size_t, l int64, b bool. A test compares the table with abi.hpp.
"""

from __future__ import annotations

# Name, slot, result, parameters. Those that run for long, wait, or call back into Python give up the interpreter's lock.
_FUNCTIONS = """
create_status 0 p ip
status_code_of 1 i p
status_message 2 p p
create_env 3 s ipp
enable_telemetry 5 s p
disable_telemetry 6 s p
create_session 7 s pppp long
create_session_from_array 8 s ppzpp long
run 9 s ppppzpzp long
create_session_options 10 s p
set_optimized_model_path 11 s pp
clone_session_options 12 s pp
set_execution_mode 13 s pi
enable_profiling 14 s pp
disable_profiling 15 s p
enable_memory_pattern 16 s p
disable_memory_pattern 17 s p
enable_cpu_arena 18 s p
disable_cpu_arena 19 s p
set_session_log_id 20 s pp
set_session_log_verbosity 21 s pi
set_session_log_severity 22 s pi
set_graph_optimization_level 23 s pi
set_intra_op_threads 24 s pi
set_inter_op_threads 25 s pi
session_input_count 30 s pp
session_output_count 31 s pp
session_initializer_count 32 s pp
session_input_type 33 s pzp
session_output_type 34 s pzp
session_initializer_type 35 s pzp
session_input_name 36 s pzpp
session_output_name 37 s pzpp
session_initializer_name 38 s pzpp
create_run_options 39 s p
set_run_log_verbosity 40 s pi
set_run_log_severity 41 s pi
set_run_tag 42 s pp
set_terminate 46 s p
unset_terminate 47 s p
create_tensor 48 s ppzip
tensor_of_data 49 s ppzpzip
tensor_data 51 s pp
string_bytes 53 s pp
string_content 54 s ppzpz
tensor_info_of_type 55 s pp
value_type_of 56 s pp
element_type 60 s pp
rank 61 s pp
extents 62 s ppz
extent_names 63 s ppz
tensor_info_of_value 65 s pp
type_of_value 66 s pp
value_type_of_value 67 s pp
create_memory_info 68 s piiip
cpu_memory 69 s iip
memory_name 71 s pp
memory_id 72 s pp
memory_type 73 s pp
memory_allocator_type 74 s pp
free 76 s pp
default_allocator 78 s p
override_extent_by_denotation 79 s ppl
part_of_value 80 s pipp
part_count 81 s pp
create_value 82 s pzip
release_env 92 v p
release_status 93 v p
release_memory_info 94 v p
release_session 95 v p long
release_value 96 v p
release_run_options 97 v p
release_type 98 v p
release_tensor_info 99 v p
release_session_options 100 v p
map_of_type 103 s pp
sequence_of_type 104 s pp
map_key_type 105 s pp
map_value_type 106 s pp
sequence_element 107 s pp
end_profiling 110 s ppp long
model_metadata 111 s pp
metadata_producer 112 s ppp
metadata_graph_name 113 s ppp
metadata_domain 114 s ppp
metadata_description 115 s ppp
metadata_entry 116 s pppp
metadata_version 117 s pp
release_metadata 118 v p
disable_session_threads 120 s p
metadata_keys 123 s pppp
override_extent_by_name 124 s ppl
available_providers 125 s pp
release_available_providers 126 s pi
add_session_entry 130 s ppp
run_with_binding 133 s ppp long
create_binding 134 s pp
release_binding 135 v p
bind_input 136 s ppp
bind_output 137 s ppp
bind_output_to_device 138 s ppp
bound_outputs 140 s pppp
clear_bound_inputs 141 v p
clear_bound_outputs 142 v p
create_and_register_allocator 144 s ppp
profiling_start 146 s pp
add_initializer 150 s ppp
create_arena_settings 156 s ziiip
release_arena_settings 157 v p
metadata_graph_description 158 s ppp
add_run_entry 165 s ppp
is_sparse 178 s pp
has_value 192 s pp
memory_of_tensor 194 s pp
synchronize_inputs 202 s p long
synchronize_outputs 203 s p long
add_external_initializers 210 s pppz
append_provider_by_name 216 s ppppz long
memory_device 225 v pp
set_log_level 226 s pi
register_custom_ops 228 s pp long
has_session_entry 237 s ppp
session_entry 238 s pppp
optional_of_type 250 s pp
optional_content 251 s pp
string_element 252 s pzzp
build_info 254 p -
create_and_register_allocator_of 259 s ppppppz
run_async 260 s ppppzpzppp long
set_deterministic 273 s pb
create_adapter 280 s ppp long
release_adapter 282 v p
add_active_adapter 283 s pp
compile_api 294 p -
create_pairs 295 v p
add_pair 296 v ppp
pairs_of 298 v pppp
release_pairs 300 v p
register_library 301 s ppp long
unregister_library 302 s pp long
ep_devices 303 s ppp
append_provider 304 s pppzppz long
set_selection_policy 305 s pi
set_selection_delegate 306 s ppp
hardware_type 307 i p
hardware_vendor_id 308 u p
hardware_vendor 309 p p
hardware_device_id 310 u p
hardware_metadata 311 p p
device_ep_name 312 p p
device_ep_vendor 313 p p
device_ep_metadata 314 p p
device_ep_options 315 p p
device_hardware 316 p p
tensor_bytes 318 s pp
has_rank 390 b p
assigned_subgraphs 407 s ppp
assigned_ep 408 s pp
assigned_nodes 409 s ppp
assigned_node_name 410 s pp
assigned_node_domain 411 s pp
assigned_node_operator 412 s pp
"""

# Functions of the table that compiles models (OrtCompileApi).
_COMPILING = """
release_compilation 0 v p
create_compilation 1 s ppp
set_input_path 2 s pp
set_input_bytes 3 s ppz
set_output_path 4 s pp
set_output_initializers 5 s ppz
set_output_bytes 6 s pppp
set_embedded 7 s pb
compile_model 8 s pp long
set_flags 9 s pu
set_optimization 11 s pi
"""


class Slot:
    """One function of the table."""

    def __init__(self, line: str) -> None:
        self.name, index, self.result, parameters, *long = line.split()
        self.index = int(index)
        self.parameters = parameters.replace("-", "")
        self.long = bool(long)


SLOTS = [Slot(line) for line in _FUNCTIONS.split("\n") if line]
COMPILE_SLOTS = [Slot(line) for line in _COMPILING.split("\n") if line]
