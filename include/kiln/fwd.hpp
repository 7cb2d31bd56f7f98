#pragma once

/// Names of the types that most declarations mention, for headers that only pass them on.
namespace kiln {

class error;
class dimension;
class bindings;
struct shape;
struct layout;
class literal;
class argument;

class operation;
template <class Operation> class basic_module;
template <class Operation> class basic_program;
using module_graph = basic_module<operation>;
using program = basic_program<operation>;
struct pass_note;
struct pass_options;

struct tensor;
class kernel;
class target;
class thread_pool;
struct compile_options;
struct compile_report;
struct run_options;
class executable;
class workspace;

}  // namespace kiln
