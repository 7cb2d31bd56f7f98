#pragma once
#include <CLI/CLI.hpp>
#include <functional>

#include "options.hpp"

namespace kiln::driver {

/// What the flags of `ops` and `options` are written into.
struct list_flags {
  enum class operators { kiln, onnx, tensorflow, tflite } of = operators::kiln;
  bool ops_json = false, ops_markdown = false;
  bool options_json = false, options_markdown = false;
};

/// The verbs that list what kiln has and read no model; one that is given becomes `verb`. `flags` and `verb` outlive
/// the parse.
void add_list_verbs(CLI::App& app, list_flags& flags, std::function<int()>& verb);

}  // namespace kiln::driver
