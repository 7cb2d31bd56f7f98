#pragma once
#include <list>
#include <memory>
#include <optional>

#include "kiln/graph/builder.hpp"
#include "kiln/interface/migraphx/argument.hpp"
#include "kiln/interface/migraphx/operation.hpp"

namespace kiln::migraphx {

class module;

/// One step of a module. Its address stands for it for as long as the module lives.
struct instruction {
  operation op;
  std::vector<const instruction*> inputs;
  std::vector<const module*> module_inputs;
  shape type;
  std::string label;  ///< a parameter's name
  const module* owner = nullptr;
  small_vector<value_id> values;       ///< in the owner's graph; several for a tuple
  std::optional<argument> constant{};  ///< a literal's elements
  bool stale = false;                  ///< of the graph that another one took the place of
  /// Versions of `module_inputs` when they were added: the graph has them as they were.
  std::vector<std::size_t> module_versions{};
};
using instruction_ref = const instruction*;

/// The operators that a macro stands for, as MIGraphX's builders of composite operators.
struct macro {
  std::string name;
  attributes options = attributes::object();
};

/// Instructions, each of which is also an instruction of a kiln module, or several: shapes are kiln's from the start.
/// Instructions of a module around it may be read; the operator that runs the module hands them over. There is none
/// around the main module. An instruction that may not be read, and one that is stale, is an `invalid_argument` error.
class module {
 public:
  explicit module(std::string name, bool is_main = false) : name_(std::move(name)), is_main_(is_main) {
    build_.module().name = text(name_);
  }
  module(const module&) = delete;
  module& operator=(const module&) = delete;

  const std::string& name() const { return name_; }
  const std::list<instruction>& instructions() const { return instructions_; }

  /// Adds at the end, or before an instruction; errors name the operator.
  instruction_ref add_instruction(const operation& op, const std::vector<instruction_ref>& inputs,
                                  const std::vector<module*>& modules = {});
  instruction_ref insert_instruction(instruction_ref before, const operation& op,
                                     const std::vector<instruction_ref>& inputs,
                                     const std::vector<module*>& modules = {});
  /// Adds what a macro stands for; the result is the last instructions' values.
  std::vector<instruction_ref> add_macro(const macro& m, const std::vector<instruction_ref>& inputs,
                                         const std::vector<module*>& modules = {});
  std::vector<instruction_ref> insert_macro(instruction_ref before, const macro& m,
                                            const std::vector<instruction_ref>& inputs,
                                            const std::vector<module*>& modules = {});
  /// A constant: a copy of the elements.
  instruction_ref add_literal(const argument& value);
  /// A name that is taken is an `invalid_argument` error.
  instruction_ref add_parameter(const std::string& name, const shape& s);
  /// What the module returns; a second return is an `invalid_argument` error.
  instruction_ref add_return(const std::vector<instruction_ref>& results);
  /// The same in place of the return that is there, if any; it becomes the last instruction.
  instruction_ref replace_return(const std::vector<instruction_ref>& results);
  /// Memory that an operator of the caller's own writes.
  instruction_ref add_allocation(const shape& s);

  std::vector<std::string> parameter_names() const;
  /// The shape of a parameter; `not_found` where there is none.
  const shape& parameter_shape(std::string_view name) const;
  /// Shapes of what the module returns: the last instruction where there is no return.
  std::vector<shape> output_shapes() const;

  /// The kiln program whose main module this is, with its outputs. A module that was changed after an operator was
  /// given it is an `invalid_argument` error.
  kiln::program graph() const;
  /// One line for each instruction.
  std::string text_of() const;
  /// Drops what the results do not need, and orders the rest.
  void sort();

  /// The graph in place of what the module holds: each of its instructions becomes one here. Those that were are stale.
  /// Parameters keep their optimals.
  void adopt(kiln::program graph);

  /// What the graph reads of modules around it, in the order of its last parameters.
  struct capture {
    instruction_ref from;
    std::uint32_t result = 0;
    value_id parameter;
  };
  const std::vector<capture>& captures() const { return captures_; }
  /// A result of an instruction as a value of this module's graph: a capture where it belongs to a module around.
  value operand(instruction_ref i, std::uint32_t result = 0) const;
  builder& build() const { return build_; }
  /// The dynamic shape of the parameter of that name gets the optimals of these ranges, where the bounds are equal.
  void set_optimals(std::string_view parameter, const std::vector<dynamic_dimension>& from);
  /// Counts changes.
  std::size_t version() const { return version_; }

 private:
  friend class program;
  instruction& put(std::list<instruction>::iterator at, instruction made);
  std::list<instruction>::iterator place_of(instruction_ref i);
  std::list<instruction>::iterator place_of_return();
  void check_fresh(instruction_ref i) const;
  instruction return_of(const std::vector<instruction_ref>& results) const;
  std::vector<instruction_ref> results() const;
  instruction_ref lower(std::list<instruction>::iterator at, const operation& op,
                        const std::vector<instruction_ref>& inputs, const std::vector<module*>& modules);

  std::string name_;
  bool is_main_ = false;
  std::list<instruction> instructions_, former_;
  mutable builder build_;  // reading from a module around adds a parameter
  mutable std::vector<capture> captures_;
  std::size_t version_ = 0;
};

}  // namespace kiln::migraphx
