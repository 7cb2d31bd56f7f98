#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/onnx/export.hpp"
#include "kiln/onnx/impl/proto.hpp"

namespace kiln::onnx {

using names = std::vector<std::string>;

/// One instruction on its way out: its op, and the ONNX names of what it reads and makes.
struct exported {
  const operation& op;
  names in;
  std::vector<shape> types;  ///< of the inputs
  shapes results;
  names out;

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
    explicit node_writer(onnx_proto::NodeProto& node) : node_(node) {}
    node_writer& set(std::string_view name, std::int64_t v);
    node_writer& set(std::string_view name, float v);
    node_writer& set(std::string_view name, std::string_view v);
    node_writer& set(std::string_view name, std::span<const std::int64_t> v);
    node_writer& set(std::string_view name, std::span<const float> v);
    node_writer& set(std::string_view name, const names& v);
    node_writer& set(std::string_view name, const literal& v);

   private:
    onnx_proto::AttributeProto& add(std::string_view name);
    onnx_proto::NodeProto& node_;
  };
  /// A node with the outputs given.
  node_writer write(std::string_view op, const names& in, const names& out);
  /// A node with one output of a fresh name, which it returns.
  std::string make(std::string_view op, const names& in);

  std::string constant(const literal& l);
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

  [[noreturn]] static void unsupported(std::string why) { raise(errc::unsupported, std::move(why)); }

 private:
  void write_module(const module_graph& m, std::map<std::uint64_t, std::string>& held, const std::string& prefix);
  void write_instruction(const exported& e);
  std::string dimension_name(dimension d);
  std::string fresh(std::string_view what);

  const program& program_;
  onnx_proto::ModelProto model_;
  onnx_proto::GraphProto* graph_ = nullptr;
  std::map<std::int64_t, std::string> dims_;
  std::map<std::string, std::string> missing_;
  std::size_t count_ = 0, bytes_ = 0;
  std::string prefix_;
};

/// Writes one op; each family's rows are in export_<family>.ipp.
struct export_row {
  std::string_view op;
  void (*write)(exporter&, const exported&) = nullptr;
};
std::span<const export_row> export_pointwise();
std::span<const export_row> export_index();
std::span<const export_row> export_layers();

}  // namespace kiln::onnx
