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
set_source_files_properties(${folder}/kiln_onnx.pb.cc PROPERTIES COMPILE_OPTIONS -w SKIP_PRECOMPILE_HEADERS ON)

kiln_generate_units(onnx_units onnx)
kiln_add_library(onnx ${onnx_units} ${folder}/kiln_onnx.pb.cc ${folder}/kiln_onnx.pb.h)
kiln_precompile(kiln_onnx)
target_include_directories(kiln_onnx SYSTEM PRIVATE ${folder})
# onnx.proto asks for the lite runtime.
target_link_libraries(kiln_onnx PUBLIC kiln::runtime PRIVATE protobuf::libprotobuf-lite)

# kiln_image_library(<name> <file format> <header> <library> [<line of the header>]): ImageDecoder reads a format where
# its library is; the one unit that does is told so.
function(kiln_image_library name format header library)
  find_path(KILN_${name}_INCLUDE_DIR ${header} PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4 openjpeg-2.3)
  find_library(KILN_${name}_LIBRARY ${library})
  set(usable 0)
  if(KILN_${name}_INCLUDE_DIR AND KILN_${name}_LIBRARY)
    set(usable 1)
    if(ARGN)
      file(STRINGS ${KILN_${name}_INCLUDE_DIR}/${header} lines REGEX ${ARGN})
      if(NOT lines)
        set(usable 0)
      endif()
    endif()
  endif()
  set(unit ${PROJECT_BINARY_DIR}/units/onnx_image_${format}.cpp)
  set_property(SOURCE ${unit} PROPERTY COMPILE_DEFINITIONS KILN_${name}=${usable})
  if(usable)
    # a folder that the compiler searches anyway would lose its place among its own
    if(NOT KILN_${name}_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      set_property(SOURCE ${unit} PROPERTY INCLUDE_DIRECTORIES ${KILN_${name}_INCLUDE_DIR})
    endif()
    target_link_libraries(kiln_onnx PRIVATE ${KILN_${name}_LIBRARY})
  else()
    message(STATUS "lib${library} is missing or too old: ImageDecoder refuses ${format} files")
  endif()
endfunction()
kiln_image_library(JPEG jpeg jpeglib.h jpeg)
kiln_image_library(PNG png png.h png)
kiln_image_library(TIFF tiff tiffio.h tiff TIFFOpenOptionsAlloc)
kiln_image_library(WEBP webp webp/decode.h webp)
kiln_image_library(OPENJPEG jpeg2000 openjpeg.h openjp2)
