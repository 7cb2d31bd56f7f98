#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/interface/language_requests.hpp"
#include "kiln/interface/language_session.hpp"
#include "kiln/interface/python_arrays/array.hpp"

// The module kiln._genai: every unit binds one subject; kiln/genai.py is its face.
namespace kiln::python {

/// What Python calls a Model. Any number of threads may use one.
class held_model {
 public:
  held_model(const language::config& c, language::session s);

  const language::session session;
  const std::shared_ptr<const language::language_model> compiled;
  const language::config& settings() const { return compiled->settings(); }
};

/// What Python calls GeneratorParams.
struct held_params : language::generator_options {
  std::shared_ptr<const held_model> model;
};

void bind_error(py::module_& m);
void bind_tensor(py::module_& m);
void bind_model(py::module_& m);
void bind_tokenizer(py::module_& m);
void bind_params(py::module_& m);
void bind_generator(py::module_& m);
void bind_engine(py::module_& m);

/// A numpy array over the memory of an argument.
py::object numpy_of(argument a);
/// The numbers of tokens as a numpy array of int32.
py::object numpy_of(std::span<const language::token> all);
/// Tokens in an array or list of any integer type, row-major.
language::tokens tokens_of_object(py::handle object);
/// Rows of tokens: a list of arrays or lists, or an array of rank 2. Nothing for what is one row (rank 0 or 1).
std::optional<std::vector<language::tokens>> token_rows_of_object(py::handle object);

}  // namespace kiln::python
