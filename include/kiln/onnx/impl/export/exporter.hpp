#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kiln/onnx/export.hpp"
#include "kiln/onnx/impl/file/proto.hpp"

namespace kiln::onnx {

using names = std::vector<std::string>;

/// What a sequence, optional or map contains: tensors, a sequence of tensors (of an optional), or maps from keys to
/// tensors (of a sequence).
struct content_type {
  dtype type = dtype::f32;
  bool in_sequence = false;
  int rank = -1;  ///< if the program shows it
  bool in_map = false;
  dtype key = dtype::i64;
};

/// An instruction being exported: its op, and the ONNX names of its inputs and results.
struct exported {
  const operation& op;
  names in;
  std::vector<shape> types;  ///< of the inputs
  shapes results;
  names out;
  const module_graph* home = nullptr;
  std::uint32_t at = 0;  ///< index in the module
  const std::map<std::uint64_t, std::string>* held = nullptr;

  /// The ONNX name of an earlier value of the module.
  const std::string& name_of(value_id v) const;

  /// The value of input i where it is a constant, else null.
  const literal* constant(std::size_t i) const {
    const auto& from = home->producer((*home)[at].inputs[i]);
    return from.kind == instruction_kind::literal ? &from.constant : nullptr;
  }
  const shape& result() const { return results[0]; }
  template <class Op> const Op& as() const { return *op.get_if<Op>(); }
};

/// Writes a program as a model.
class exporter {
 public:
  explicit exporter(const program& p, quantized_form form = quantized_form::usual) : program_(p), form_(form) {}
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
    /// Sets the node's domain, and imports its operator set.
    node_writer& of_domain(std::string_view domain);
    /// The type of an optional that contains this.
    node_writer& set_type(std::string_view name, content_type v);

   private:
    onnx_proto::AttributeProto& add(std::string_view name, onnx_proto::AttributeProto::AttributeType type);
    exporter& owner_;
    onnx_proto::NodeProto& node_;
  };
  /// Adds a node.
  node_writer write(std::string_view op, const names& in, const names& out);
  /// Adds a node with one output, and returns the output's new name.
  std::string make(std::string_view op, const names& in);
  /// A new name.
  std::string fresh(std::string_view what);

  /// A constant. Its name begins with that of what it stems from, where it has one.
  std::string constant(const literal& l, std::string_view of = {}, std::string_view what = {});
  /// A sequence or optional that is a constant.
  std::string object_constant(const argument& a, content_type held);
  template <class T> std::string scalar(dtype t, T v) { return constant(literal::scalar(t, v)); }
  std::string integers(std::span<const std::int64_t> v);
  /// i64[n] of dimensions; symbolic ones are computed from shapes of inputs.
  std::string dimensions(std::span<const dimension> v);
  std::string cast(const std::string& x, dtype to);
  std::string reshaped(const std::string& x, const dims& to);
  std::string expanded(const std::string& x, const dims& to);

  /// The inputs of a Scan along `axis`. Its body gets the states, then a slice of each `sliced` input.
  struct scan_over {
    names states, sliced;
    std::vector<shape> types;  ///< of the states and of the slices
    std::int64_t axis = 0;
    bool reverse = false;
  };
  /// Adds a Scan. Its outputs are the last states, then the body's other outputs, stacked along the axis.
  void scan(const scan_over& over, const names& out, const std::vector<shape>& stacked,
            const std::function<names(const names&)>& body);
  /// Add an If and a Loop with their bodies.
  void branch(const exported& e);
  void loop(const exported& e);
  /// Notes where symbols can be read: as extents of a value, or as its elements.
  void learn_extents(const std::string& name, const shape& s);
  void learn_elements(const std::string& name, std::span<const dimension> symbols);
  /// Raises the model's operator set to the first that has an element type.
  void need(dtype t);
  /// What a sequence, optional or map of a module contains.
  content_type content_of(const module_graph& m, value_id v) const;

  [[noreturn]] static void unsupported(std::string why) { raise(errc::unsupported, std::move(why)); }

 private:
  void write_module(const module_graph& m, std::map<std::uint64_t, std::string>& held, const std::string& prefix);
  void write_instruction(const exported& e);
  /// Removes nodes and constants that nothing reads, as those are of which another form was written.
  void drop_unused();
  /// Writes a product with, or a gather of, weights in blocks: what instruction `numbers` stands for.
  void write_stored(const exported& e, std::uint32_t numbers);
  /// Writes numbers in blocks, or a matrix of them transposed, as DequantizeLinear; false where e is no such thing.
  bool write_blocks(const exported& e);
  void write_dequantized_blocks(const exported& e, std::uint32_t numbers, bool transposed);
  void declare(onnx_proto::ValueInfoProto& to, const std::string& name, const shape& s, content_type held) const;
  /// Writes a body as a graph attribute. The first parameters are its `inputs`, the others are values outside.
  void write_body(onnx_proto::GraphProto& to, module_ref body, std::span<const content_type> inputs,
                  const names& others);
  std::string dimension_name(dimension d);
  std::string symbol_value(dimension d);

  const program& program_;
  quantized_form form_;
  onnx_proto::ModelProto model_;
  onnx_proto::GraphProto* graph_ = nullptr;
  std::map<std::int64_t, std::string> dims_;
  std::vector<std::int64_t> dims_named_, sources_known_;  // keys of these maps, in the order of insertion
  // Where a symbol can be read: an extent or an element of a value.
  struct source {
    std::string name;
    std::int64_t at = 0;
    bool is_extent = true;
  };
  void learn(dimension d, source from);
  std::map<std::int64_t, source> sources_;
  std::map<std::uint64_t, std::string> named_;  // values of the main module that are outputs, by value_key
  std::map<std::string, std::string> missing_;
  // operands of weights in blocks, as products or gathers read them
  std::map<std::tuple<const module_graph*, std::uint32_t, bool>, names> stored_;
  std::set<std::string> taken_;  // names of constants that are no `fresh` ones
  std::size_t count_ = 0;
  std::int64_t operators_ = 0, format_ = 0;  // versions of the operator set and of the file
  std::string prefix_;
};

/// An operator's name as a template argument.
template <std::size_t N> struct fixed_text {
  char text[N];
  consteval fixed_text(const char (&t)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = t[i];
  }
};

/// A value of a module as one number.
constexpr std::uint64_t value_key(value_id v) { return std::uint64_t{v.instruction} << 32 | v.result; }

inline const std::string& exported::name_of(value_id v) const { return held->at(value_key(v)); }

/// Writes an instruction and those before it that compute on dequantized integers as one operator that reads the
/// integers; false where there is none.
bool write_quantized_operator(exporter& x, const exported& e);

/// Writes a convolution of integers.
void write_integer_convolution(exporter& x, const exported& e);

/// The attributes of windows. Strides and dilations of 1 are the default, and left out: not every operator that others
/// make of these takes them.
template <class Op> exporter::node_writer& put_window(exporter::node_writer& n, const Op& o) {
  const auto list = [](const auto& v) { return std::span(v.data(), v.size()); };
  const auto is_default = [](const auto& v) { return std::all_of(v.begin(), v.end(), [](auto k) { return k == 1; }); };
  if (!is_default(o.stride)) n.set("strides", list(o.stride));
  if (!is_default(o.dilation)) n.set("dilations", list(o.dilation));
  if (!o.pads.empty()) n.set("pads", list(o.pads));
  return n;
}

/// Writes one op. The tables are in the files of this folder.
struct op_exporter {
  std::string_view op;
  void (*write)(exporter&, const exported&) = nullptr;
};
std::span<const op_exporter> export_same();
std::span<const op_exporter> export_pointwise();
std::span<const op_exporter> export_reductions();
std::span<const op_exporter> export_index();
std::span<const op_exporter> export_layers();
std::span<const op_exporter> export_dynamic();
std::span<const op_exporter> export_recurrence();

/// Floats in blocks as DequantizeLinear (stored_weights.ipp).
void write_block_dequantize(exporter& x, const exported& e);

/// An operator that is the same in ONNX.
template <fixed_text Name> void write_same(exporter& x, const exported& e) { x.write(Name.text, e.in, e.out); }

template <class List> auto all(const List& v) { return std::span(v.data(), v.size()); }

}  // namespace kiln::onnx
