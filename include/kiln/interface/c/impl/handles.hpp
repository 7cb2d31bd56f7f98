#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "kiln/interface/c/impl/guard.hpp"
#include "kiln/runtime/dlpack.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/tensorflow/import.hpp"

// What the handles of kiln.h point to.

struct kiln_tensor {
  kiln::argument value;
  kiln::dlpack::device where{};
  bool read_only = false;
};

struct kiln_import_options {
  kiln::tensorflow::import_options options;
  std::string directory = ".";
};

struct kiln_program {
  kiln::program graph;
  std::vector<std::string> remarks;
  std::vector<kiln::port> inputs, outputs;
};

struct kiln_compile_options {
  kiln::compile_options options;
};

struct kiln_executable {
  kiln::executable compiled;
  bool has_device = false;
};

struct kiln_run_options {
  std::atomic<bool> cancel{false};
  kiln::run_options options;
};

struct kiln_workspace {
  kiln::workspace memory;
  // Between runs without elements: a run allocates nothing.
  std::vector<kiln::argument> inputs, outputs;
};

namespace kiln::c {

/// A handle of a program, with what its maker took for granted.
kiln_program* new_program(program graph, std::vector<std::string> remarks);

/// Elements that kiln reads itself lie in the host's memory; else `unsupported`.
void check_on_host(const kiln_tensor& t);

/// A type from the caller.
dtype checked_type(kiln_dtype type);

/// Extents from the caller: numbers from 0 on.
dims checked_lens(std::size_t rank, const std::int64_t* lens);

/// The same with strides, row-major where there are none.
shape checked_shape(kiln_dtype type, std::size_t rank, const std::int64_t* lens, const std::int64_t* strides = nullptr);

/// Writes type, rank and extents where the caller wants them.
void put_shape(const shape& s, kiln_dtype* type, std::size_t* rank, std::int64_t* lens);

}  // namespace kiln::c
