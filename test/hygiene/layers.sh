#!/usr/bin/env bash
# Includes under include/kiln point only downwards, heavy dependencies stay where they belong, questions about the
# compiler and the machine are asked in config.hpp (elsewhere its KILN_ answers alone decide; headers in C, .h, stand
# alone), and files stay short. Interfaces, the folders of interface/, are above everything and do not know each other;
# Python's share interface/python_arrays.
# An optional argument names another include folder to check.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../../include}"

find kiln -name '*.hpp' -o -name '*.ipp' -o -name '*.h' | sort | xargs awk '
  function fault(text) { print "include/" FILENAME ":" FNR ": " text; bad++ }
  # The layer of a path below kiln/: its height, and the unit that alone may include within that height.
  function place(path,   part) {
    split(path, part, "/")
    unit = part[2]
    if (unit == "backend") unit = part[2] "/" part[3]
    shared = part[2] == "interface" && part[3] == "python_arrays"
    door = part[2] == "interface" && part[3] != "impl" && part[4] != "" && !shared
    if (door || shared) unit = part[2] "/" part[3]
    if (path !~ /^kiln\/[^\/]*\//) unit = "root"
    if (path == "kiln/kiln.hpp") unit = "umbrella"
    if (path == "kiln/eigen.hpp") unit = "eigen.hpp"
    return height[part[2] == "backend" ? "backend" : door ? "door" : unit]
  }
  BEGIN {
    height["root"] = 0; height["core"] = 1; height["meta"] = 2; height["op"] = 3; height["graph"] = 4
    height["pass"] = 5; height["lower"] = 6; height["runtime"] = 7; height["kernel"] = 8
    height["text"] = height["static_program"] = height["onnx"] = height["quantize"] = height["backend"] = 9
    height["eigen.hpp"] = 2; height["cpp_export"] = height["generate"] = height["tensorflow"] = 10; height["umbrella"] = 11
    height["interface"] = 12; height["interface/python_arrays"] = 13; height["door"] = 14
  }
  FNR == 1 {
    own_height = place(FILENAME); own = unit; files++
    if (own_height == "") fault("a folder that the layers do not name")
  }
  FNR == 401 { fault("more than 400 lines") }
  /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)/ && !/^[ \t]*#[ \t]*(if|elif) !?KILN_[A-Z0-9_]+$/ && FILENAME != "kiln/config.hpp" && FILENAME !~ /\.h$/ {
    fault("conditional compilation outside config.hpp")
  }
  /^[ \t]*#[ \t]*include/ {
    name = $0
    sub(/^[^<"]*[<"]/, "", name); sub(/[>"].*$/, "", name)
    if (name ~ /^kiln\//) {
      other_height = place(name)
      if (other_height > own_height) fault(own " includes " name ", which is a layer above")
      else if (other_height == own_height && unit != own) fault(own " includes " name ", its sibling")
    } else if ($0 ~ /"/ && name !~ /\.pb\.h$/) {
      fault("\"" name "\" is not named from kiln/")
    }
    if (name ~ /^boost\// && own != "meta") fault("Boost belongs in meta")
    if (name ~ /^google\/protobuf|\.pb\.h$/ && FILENAME !~ /^kiln\/(onnx|interface\/serve)\/impl\//)
      fault("protobuf belongs in onnx/impl and interface/serve/impl")
    if (name ~ /^(unicode\/|pcre2)/ && FILENAME !~ /^kiln\/text\/impl\//) fault("ICU and PCRE2 belong in text/impl")
    if (name ~ /^flatbuffers/ && FILENAME !~ /^kiln\/(quantize|generate|tensorflow)\/impl\//)
      fault("flatbuffers belongs in quantize/impl, generate/impl and tensorflow/impl")
    if (name ~ /^(Eigen|unsupported)\// && FILENAME !~ /^kiln\/(backend\/eigen\/impl\/|quantize\/impl\/|eigen\.hpp$)/)
      fault("Eigen belongs in backend/eigen/impl, quantize/impl and eigen.hpp")
    if (name == "kiln/eigen.hpp") fault("eigen.hpp is for users who have Eigen")
    if (name ~ /^(hip|cuda|nvrtc)/ && own != "backend/hip") fault("HIP belongs in backend/hip")
  }
  END { print files " files, " bad + 0 " faults"; exit bad > 0 }'
