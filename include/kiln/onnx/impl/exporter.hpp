#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/onnx/export.hpp"
#include "kiln/onnx/impl/proto.hpp"

namespace kiln::onnx {

using names = std::vector<std::string>;

/// What a sequence or optional holds: tensors of a type, or, of an optional, a sequence of them. A map, or a sequence
/// of maps, from keys to such tensors.
struct held_type {
  dtype type = dtype::f32;
  bool in_sequence = false;
  int rank = -1;  ///< where an item is seen to go in or come out
  bool in_map = false;
  dtype key = dtype::i64;
};

/// One instruction on its way out: its op, and the ONNX names of what it reads and makes.
struct exported {
  const operation& op;
  names in;
  std::vector<shape> types;  ///< of the inputs
  shapes results;
  names out;
  const module_graph* home = nullptr;
  std::uint32_t at = 0;  ///< in the module

  /// The value of input i where it is a constant, else null.
  const literal* constant(std::size_t i) const {
    const auto& from = home->producer((*home)[at].inputs[i]);
    return from.kind == instruction_kind::literal ? &from.constant : nullptr;
  }
  const shape& result() const { return results[0]; }
};

/// Writes the nodes of a graph.
class exporter {
 public:
  explicit exporter(const program& p) : program_(p) {}
  onnx_proto::ModelProto run();

  /// A node being written: attributes are added to it.
  class node_writer {
   public:
    node_writer(exporter& owner, onnx_proto::NodeProto& node) : owner_(owner), node_(node) {}
    node_writer& set(std::string_view name, std::int64_t v);
    node_writer& set(std::string_view name, float v);
    node_writer& set(std::string_view name, std::string_view v);
    node_writer& set(std::string_view name, std::span<const std::int64_t> v);
    node_writer& set(std::string_view name, std::span<const float> v);
    node_writer& set(std::string_view name, const names& v);
    node_writer& set(std::string_view name, const literal& v);
    onnx_proto::GraphProto& set_graph(std::string_view name);
    /// The node's domain, which the model imports then.
    node_writer& of_domain(std::string_view domain);
    /// The type of an optional of this.
    node_writer& set_type(std::string_view name, held_type v);

   private:
    onnx_proto::AttributeProto& add(std::string_view name);
    exporter& owner_;
    onnx_proto::NodeProto& node_;
  };
  /// A node with the outputs given.
  node_writer write(std::string_view op, const names& in, const names& out);
  /// A node with one output of a fresh name, which it returns.
  std::string make(std::string_view op, const names& in);
  /// A name of its own.
  std::string fresh(std::string_view what);

  std::string constant(const literal& l);
  /// A sequence or optional that is a constant.
  std::string object_constant(const argument& a, held_type held);
  template <class T>
  std::string scalar(dtype t, T v) {
    return constant(literal::scalar(t, v));
  }
  std::string integers(std::span<const std::int64_t> v);
  /// i64[n] of dimensions, computed from the inputs' shapes where they are symbolic.
  std::string dimensions(std::span<const dimension> v);
  std::string cast(const std::string& x, dtype to);
  std::string reshaped(const std::string& x, const dims& to);
  std::string expanded(const std::string& x, const dims& to);

  /// What a Scan goes over, along `axis`, and what its body is given: the states, then a slice of each.
  struct scan_over {
    names states, sliced;
    std::vector<shape> types;  ///< of the states and of the slices
    std::int64_t axis = 0;
    bool reverse = false;
  };
  /// A Scan whose outputs are the last states and then the body's other outputs, stacked along the same axis.
  void scan(const scan_over& over, const names& out, const std::vector<shape>& stacked,
            const std::function<names(const names&)>& body);
  /// Writes a call of bodies.
  void branch(const exported& e);
  void loop(const exported& e);
  /// Extents and elements are what later dimensions are read from: those that are symbols.
  void learn_extents(const std::string& name, const shape& s);
  void learn_elements(const std::string& name, std::span<const dimension> symbols);
  /// What a value of a module, a sequence or optional, holds.
  held_type held_by(const module_graph& m, value_id v) const;

  [[noreturn]] static void unsupported(std::string why) { raise(errc::unsupported, std::move(why)); }

 private:
  void write_module(const module_graph& m, std::map<std::uint64_t, std::string>& held, const std::string& prefix);
  void write_instruction(const exported& e);
  void declare(onnx_proto::ValueInfoProto& to, const std::string& name, const shape& s, held_type held) const;
  /// A body as the graph of an attribute: `inputs` are declared, other parameters have the names given.
  void write_body(onnx_proto::GraphProto& to, module_ref body, std::span<const held_type> inputs, const names& others);
  std::string dimension_name(dimension d);
  std::string symbol_value(dimension d);

  const program& program_;
  onnx_proto::ModelProto model_;
  onnx_proto::GraphProto* graph_ = nullptr;
  std::map<std::int64_t, std::string> dims_;
  std::vector<std::int64_t> dims_named_, sources_known_;  // in the order in which they came
  // Where a symbol's value can be read: an extent of a value, or its element.
  struct source {
    std::string name;
    std::int64_t at = 0;
    bool is_extent = true;
  };
  void learn(dimension d, source from);
  std::map<std::int64_t, source> sources_;
  std::map<std::uint64_t, std::string> named_;  // results of ops of the main module that are its outputs
  std::map<std::string, std::string> missing_;
  std::size_t count_ = 0, bytes_ = 0;
  std::string prefix_;
};

/// An operator's name as a template's argument.
template <std::size_t N>
struct fixed_text {
  char text[N];
  consteval fixed_text(const char (&t)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = t[i];
  }
};

/// A value of a module as one number.
constexpr std::uint64_t value_key(value_id v) { return std::uint64_t{v.instruction} << 32 | v.result; }

/// Writes one op; each family's rows are in export_<family>.ipp.
struct export_row {
  std::string_view op;
  void (*write)(exporter&, const exported&) = nullptr;
};
std::span<const export_row> export_pointwise();
std::span<const export_row> export_index();
std::span<const export_row> export_layers();
std::span<const export_row> export_dynamic();
std::span<const export_row> export_recurrence();

}  // namespace kiln::onnx
