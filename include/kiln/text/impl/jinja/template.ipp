#include "kiln/text/jinja/template.hpp"

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/parser.hpp"

namespace kiln::language::jinja {

compiled_template::compiled_template(std::string_view source, std::string name, syntax s) {
  auto made = std::make_shared<program>();
  made->name = std::move(name);
  parser(*made, lex(source, made->name, s)).run();
  program_ = std::move(made);
}

std::string compiled_template::render(std::string_view variables_json, const limits& bounds) const {
  return interpreter(*program_, bounds).run(variables_json);
}

std::string interpreter::run(std::string_view variables_json) {
  scope globals(nullptr), variables(&globals);
  for (const native& f : global_functions())
    globals.set(f.name, static_cast<object*>(values.make<bound_native>(f, value())));
  const value given = from_json(values, variables_json, "a template's variables");
  if (!given.is(kind::dict)) raise(errc::invalid_argument, "a template's variables are a JSON object");
  for (const auto& [key, v] : given.dict()->entries) variables.set(key.bytes(), v);
  std::string out;
  out_ = &out;
  scope_ = &variables;
  try {
    execute(program_.top);
  } catch (error& e) {
    e.at_source(place(program_.name, at_));
    throw;
  }
  return out;
}

}  // namespace kiln::language::jinja
