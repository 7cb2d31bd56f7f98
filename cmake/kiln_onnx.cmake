# kiln::onnx: the importer, a static library. It compiles libonnx-dev's onnx.proto under a package name of
# its own, so that a program may also hold another copy of ONNX's messages.

find_package(Protobuf REQUIRED)
find_file(KILN_ONNX_PROTO onnx/onnx.proto PATHS /usr/include REQUIRED
          DOC "onnx.proto of ONNX 1.12 or later (Debian: libonnx-dev)")

set(folder ${PROJECT_BINARY_DIR}/onnx_proto)
file(READ ${KILN_ONNX_PROTO} proto)
string(REGEX REPLACE "\npackage onnx;" "\npackage kiln.onnx_proto;" renamed "${proto}")
if(renamed STREQUAL proto)
  message(FATAL_ERROR "${KILN_ONNX_PROTO} has no line \"package onnx;\"")
endif()
set(out ${folder}/kiln_onnx.proto)
set(had "")
if(EXISTS ${out})
  file(READ ${out} had)
endif()
if(NOT had STREQUAL renamed)
  file(WRITE ${out} "${renamed}")
endif()

add_custom_command(
  OUTPUT ${folder}/kiln_onnx.pb.cc ${folder}/kiln_onnx.pb.h
  COMMAND protobuf::protoc --proto_path=${folder} --cpp_out=${folder} kiln_onnx.proto
  DEPENDS ${out}
  VERBATIM)
set_source_files_properties(${folder}/kiln_onnx.pb.cc PROPERTIES COMPILE_OPTIONS -w)

kiln_generate_units(onnx_units onnx)
kiln_add_library(onnx ${onnx_units} ${folder}/kiln_onnx.pb.cc ${folder}/kiln_onnx.pb.h)
target_include_directories(kiln_onnx SYSTEM PRIVATE ${folder})
# onnx.proto asks for the lite runtime.
target_link_libraries(kiln_onnx PUBLIC kiln::runtime PRIVATE protobuf::libprotobuf-lite)
