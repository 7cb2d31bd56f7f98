#pragma once
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "kiln/cpp_export/cpp_export.hpp"
#include "kiln/cpp_export/impl/writer.hpp"
#include "kiln/graph/op_source.hpp"
#include "kiln/op/index.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "kiln/op/linear.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/nn.hpp"
#include "kiln/op/sequence/recurrent.hpp"
#include "kiln/static_program/plan/planner.hpp"

namespace kiln::aot {

/// The texts of headers of kernel/ that exported programs contain: the build writes units that hold them.
extern const std::string_view product_text, transpose_square_text, winograd_nchw_text, conv_nhwc_text, transform_text,
    winograd_nhwc_text, depthwise_nhwc_text, attention_text;

/// Writes the steps of a plan as member functions of the exported class. Each family of steps has a file of its own.
class cpp_exporter {
 public:
  using plan_type = planner<program>;

  cpp_exporter(const program& p, const cpp_options& options);
  cpp_project write();

 private:
  // ---- loops over equal dims: those that continue each other for every operand are one
  struct nest {
    std::vector<std::int64_t> extent;
    std::vector<std::vector<std::int64_t>> step;  ///< [operand][dim]
    std::string offset(std::size_t operand, std::string_view prefix) const;
  };
  /// The dims by the strides of the last operand, largest first; the first operand decides among its repeated dims.
  static std::vector<std::size_t> by_falling_strides(std::size_t rank, const std::vector<place>& operands) {
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const ints &last = operands.back().strides, &first = operands.front().strides;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return last[a] != last[b] ? last[a] > last[b] : last[a] == 0 && first[a] > first[b];
    });
    return order;
  }
  template <class Use> static nest make_nest(const ints& lens, const std::vector<place>& operands, Use use) {
    nest n;
    n.step.resize(operands.size());
    for (const std::size_t d : by_falling_strides(lens.size(), operands)) {
      if (lens[d] == 1 || !use(d)) continue;
      bool joins = !n.extent.empty();
      for (std::size_t k = 0; k < operands.size() && joins; ++k)
        joins = n.step[k].back() == operands[k].strides[d] * lens[d];
      if (joins) {
        n.extent.back() *= lens[d];
        for (std::size_t k = 0; k < operands.size(); ++k) n.step[k].back() = operands[k].strides[d];
      } else {
        n.extent.push_back(lens[d]);
        for (std::size_t k = 0; k < operands.size(); ++k) n.step[k].push_back(operands[k].strides[d]);
      }
    }
    return n;
  }
  /// Opens the loops prefix0, prefix1, …; the caller closes them.
  void open(const nest& n, std::string_view prefix);

  // ---- operands
  std::vector<place> places(const draft& d) const;
  /// Declares `name` as a pointer to element 0 of an operand.
  void declare(std::string_view name, const place& p, bool writes);
  std::string base_of(const place& p);
  std::int64_t constant_at(std::int64_t index);
  /// Declares `filters`, a weight in the form that the step reads.
  void declare_prepared(const place& weight);
  std::int64_t add_weights(const std::byte* from, std::size_t bytes);
  /// Bytes of memory of a step's own; positions count from the end of the arena.
  std::int64_t take_scratch(std::int64_t bytes);

  // ---- families of steps
  void write_step(const draft& d, std::size_t k);
  void write_copy(const draft& d);
  void write_pointwise(const draft& d);
  void write_reduce(const draft& d);
  struct product_writer;
  void write_product(const draft& d);
  void write_winograd_nchw(const draft& d);
  void write_image(const draft& d);
  /// An operand of a convolution's epilogue: its text at the first result, and whether the next ones are adjacent.
  struct epilogue_operand {
    std::uint32_t node = 0;
    std::string at;
    bool along = false;
  };
  /// Whether the pointwise ops of a convolution's epilogue have the same text for vectors as for floats.
  bool runs_simt(const draft& d, std::size_t product) const;
  /// Writes a convolution's epilogue for `count` results whose sums are the vector `sums`: gives the vector's text.
  std::string write_epilogue(const draft& d, std::span<const epilogue_operand> read, std::string_view count);

  // ---- generic ops: `write` has an overload for each one that has a text
  static bool has_text(const operation& op);
  void write_other(const draft& d, const operation& op);
  /// Opens the loops prefix0, prefix1, … over all of `lens` and gives the position of an element of p in them.
  std::string open_all(const ints& lens, const place& p, std::string_view prefix = "i");
  /// The position of element [prefix0, prefix1, …] of p, with another text as index `but`.
  static std::string element(const place& p, std::string_view prefix = "i", std::size_t but = max_rank,
                             std::string_view instead = {});
  void write(const draft& d, const op::pooling& op);
  void write(const draft& d, const op::gather& op);
  void write(const draft& d, const op::attention& op);
  void write(const draft& d, const op::lrn& op);
  void write(const draft& d, const op::pad& op);
  void write(const draft& d, const op::cumsum& op);
  void write(const draft& d, const op::cumprod& op);
  void write(const draft& d, const op::arg_max& op);
  void write(const draft& d, const op::arg_min& op);
  void write(const draft& d, const op::topk& op);
  void write(const draft& d, const op::tri& op);
  void write(const draft& d, const op::one_hot& op);
  void write(const draft& d, const op::gather_elements& op);
  void write(const draft& d, const op::scatter_elements& op);
  void write(const draft& d, const op::gather_nd& op);
  void write(const draft& d, const op::scatter_nd& op);
  void write(const draft& d, const op::deconvolution& op);
  void write(const draft& d, const op::mel_weights& op);
  struct recurrent_writer;
  void write(const draft& d, const op::recurrent& op);
  template <class Op> void write_running(const draft& d, const Op& op, int start, std::string_view sign);
  template <class Op> void write_extreme(const draft& d, const Op& op, std::string_view sign);
  void write_copied(const place& in, const place& to);

  // ---- bodies: node k becomes the value v<k>
  void write_node(const draft& d, std::size_t k, std::string_view prefix = "v", bool vectors = false);
  std::string literal_value(const node& n) const;
  /// The text of node k's value over those of its operands; for `vectors`, temporaries have deduced types.
  source_text node_text(const draft& d, std::size_t k, std::string_view prefix, bool vectors) const;
  /// The value of another part of an op; its statements become lines.
  std::string write_part(const operation& op, trace_part part, dtype type, const std::vector<std::string>& names,
                         const std::string& temporary);
  class reduce_writer;

  /// Throws `unsupported` with the names of all ops that have no text.
  void check_ops() const;
  void name_ports();
  std::string kernel_text() const;
  std::string class_text() const;
  std::string header_text();
  std::string main_text() const;
  std::string cmake_text() const;
  std::string unique(std::string_view wanted);

  const program& program_;
  const module_graph& graph_;
  cpp_options options_;
  plan_type plan_;
  source_writer out_{1};  ///< the steps, members of a class
  struct port_text {
    std::string name;  ///< an identifier
    std::string source;
    place where;
    std::int64_t elements = 0;
  };
  std::vector<port_text> inputs_, outputs_;
  std::set<std::string> names_;
  std::vector<std::byte> weights_;
  std::map<std::int64_t, std::int64_t> constant_positions_;
  std::multimap<std::size_t, std::pair<std::int64_t, std::size_t>> weight_hashes_;
  std::int64_t scratch_ = 0, most_scratch_ = 0;
};

}  // namespace kiln::aot
