#pragma once
#include "kiln/graph/literal_values.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/lower/memory_plan.hpp"
#include "kiln/static_program/plan/draft.hpp"
#include "kiln/static_program/plan/layouts.hpp"
#include "kiln/static_program/plan/prepared_weights.hpp"
#include "kiln/static_program/plan/record_writer.hpp"
#include "kiln/static_program/plan/step_body.hpp"
#include "kiln/static_program/plan/step_scratch.hpp"

namespace kiln::aot {

/// Makes the steps of a program of fixed sizes, whose values are where the memory plan says. In constant evaluation it
/// writes the program's records; the export to C++ reads the plan itself.
template <class Program> class planner {
 public:
  using module_type = typename Program::module_type;
  using instruction = typename module_type::instruction;
  using operation_type = typename Program::operation_type;
  static constexpr bool callers_outputs = false;
  constexpr explicit planner(const Program& p)
      : program_(p), graph_(p.main()), layouts_(plan_layouts(p, writes_records)), values_(p, *this) {}

  constexpr words build() {
    lay_out();
    write();
    return out_.finished(header_);
  }
  /// Plans without writing records. Afterwards `attributes` of a step or node counts `operations`.
  constexpr void lay_out() {
    joined_.resize(graph_.size(), false);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) values_.place(i);
    for (std::uint32_t k = 0; k < graph_.outputs.size(); ++k) {
      values_.place_output(k);
      results_.push_back({values_.outputs()[k], graph_.shape_of(graph_.outputs[k]).type});
    }
    header_.arena_bytes = values_.share_arena();
  }
  constexpr const small_vector<draft>& drafts() const { return drafts_; }
  constexpr const small_vector<operand>& results() const { return results_; }
  constexpr const small_vector<std::uint32_t>& constants() const { return values_.constants(); }
  constexpr const operation_type& operation(std::int64_t k) const { return *operations_[static_cast<std::size_t>(k)]; }
  constexpr const small_vector<prepared_weight>& prepared() const { return prepared_.items; }
  constexpr std::int64_t arena_bytes() const { return header_.arena_bytes; }
  constexpr place final_place(const operand& o) const {
    const lower::buffer& b = values_.buffers()[o.at.buffer];
    place p{{b.kind, b.index, b.offset}, o.type, to_ints(o.at.where.lens)};
    p.strides = to_ints(o.at.where.strides);
    p.offset = o.at.where.offset.value();
    return p;
  }

  // ---- for the memory plan
  constexpr bool prefers_nhwc(value_id v) const { return layouts_.nhwc(v); }
  constexpr std::optional<layout> operand_of_nhwc_view(std::uint32_t i) const {
    return layouts_.operand_of_nhwc_view(i);
  }
  // Vectors run over the channels of images in NHWC, else over the last dim.
  constexpr bool writes(value_id v, const layout& where) const {
    if (where.lens.size() != graph_.shape_of(v).rank()) return false;
    if (!prefers_nhwc(v)) return lower::accepts(lower::stride_support::rows, where);
    return where.strides[1] == dimension(1) || where.lens[1] == dimension(1);
  }
  constexpr void make_copy(const lower::placement& from, const lower::placement& to, const shape& s, std::string_view) {
    draft d;
    d.record.kind = step_kind::copy;
    d.inputs.push_back({from, s.type});
    d.outputs.push_back({to, s.type});
    add(std::move(d));
  }
  constexpr void make_step(std::uint32_t i) {
    if (!joined_[i]) emit_kernel(i);
  }

 private:
  static constexpr bool writes_records = requires(const operation_type& op, words& to) { op.save(to); };

  constexpr small_vector<place> final_places(const small_vector<operand>& list) const {
    small_vector<place> all;
    for (const operand& o : list) all.push_back(final_place(o));
    return all;
  }

  // ---- kernels
  constexpr void emit_kernel(std::uint32_t i) {
    const instruction& ins = graph_[i];
    draft d;
    d.from = i;
    for (value_id v : ins.inputs) d.inputs.push_back({values_.placement_of(v), graph_.shape_of(v).type});
    if (const auto* fused = ins.op.template get_if<op::fused>()) {
      constexpr step_kind kinds[] = {step_kind::pointwise, step_kind::reduce, step_kind::product};
      d.record.kind = kinds[static_cast<unsigned>(fused->kind)];
      take_body(d, program_.module(fused->body), [&](const operation_type& op) { return node_of(op); });
    } else if (const op_kind kind = ins.op.kind();
               kind == op_kind::contraction || kind == op_kind::pointwise || kind == op_kind::reduction) {
      d.record.kind = kind == op_kind::contraction ? step_kind::product
                      : kind == op_kind::pointwise ? step_kind::pointwise
                                                   : step_kind::reduce;
      take_alone(d, graph_, ins, [&](const operation_type& op) { return node_of(op); });
    } else {
      d.record.kind = step_kind::other;
      d.record.op = index_of(ins.op);
      d.record.attributes = save(ins.op);
    }
    value_id made{i, 0};
    if (d.record.kind == step_kind::product) prepare(d, made);
    for (; made.result < graph_[made.instruction].results.size(); ++made.result)
      d.outputs.push_back({values_.result(made), graph_.shape_of(made).type});
    if constexpr (writes_records) {
      const std::int64_t bytes =
          scratch_bytes(d.record.kind, d.nodes, contracted(ins), final_places(d.inputs), final_places(d.outputs));
      if (bytes != 0) d.scratch = values_.add_buffer(memory::arena, bytes);
    }
    add(std::move(d));
  }
  // The contraction of an instruction, or its own op.
  constexpr const operation_type& contracted(const instruction& ins) const {
    const auto found = lower::contraction_of(program_, ins);
    return found ? found.instruction->op : ins.op;
  }
  // Weights that a product reads in another form are prepared when they are bound.
  constexpr void prepare(draft& d, value_id& made) {
    const operation_type& op = contracted(graph_[d.from]);
    const auto in = final_places(d.inputs);
    const lower::contraction_split split = split_of(d.nodes);
    const std::size_t left = split.operands[0], right = split.operands[1];
    const place& weight = in[right];
    if (left == right || weight.at.where != (writes_records ? memory::weight : memory::constant)) return;
    layout as = d.inputs[right].at.where;
    weight_form form = weight_form::planes;
    if (const auto* conv = op.template get_if<op::convolution>()) {
      if (layouts_.nhwc({d.from, 0}))
        form = prepare_nhwc(d, *conv);
      else if (!filter(d, *conv, in, made))
        return;
    } else {
      const shape& s = graph_[d.from].results[0];  // an export packs the matrix of a few rows in the order of its tiles
      if (!op.template is<op::dot>() || (!writes_records && reads_rows(d.nodes, in, s))) return;
      if (reads_rows(d.nodes, in, s)) {
        as.offset = 0, as.strides = {row_pitch(weight), 1};
        form = weight_form::rows;
      } else if (reads_panels(d.nodes, in, final_place({values_.result(made), s.type}))) {
        d.record.kind = step_kind::windows;
        form = weight_form::panels;
      } else {
        return;
      }
    }
    d.inputs[right].at = {values_.add_buffer(memory::prepared, 0, static_cast<std::uint32_t>(weight.at.index)), as};
    values_.buffers().back().offset = prepared_.add(weight, form);
  }
  // Plans a convolution whose result is NHWC. So are the operands that its vectors of channels read, but images of few
  // channels.
  constexpr weight_form prepare_nhwc(draft& d, const op::convolution& conv) {
    const lower::contraction_split split = split_of(d.nodes);
    const std::size_t image = split.operands[0], weight = split.operands[1];
    const auto transpose = [&](std::size_t k) { d.inputs[k].at = values_.copy_of(graph_[d.from].inputs[k], true, {}); };
    for (std::uint32_t k : split.epilogue_inputs)
      if (!along_channels(final_place(d.inputs[k]))) transpose(k);
    const place x = final_place(d.inputs[image]);
    if (conv.group == 1 ? x.lens[1] >= 16 && !along_channels(x) : x.lens[1] != 1 && x.strides[1] != 1) transpose(image);
    const shape& s = graph_[d.from].results[0];
    const nhwc_method method = choose_nhwc_method(conv, final_place(d.inputs[image]), final_place(d.inputs[weight]),
                                                  {{}, s.type, to_ints(s.lens), {}});
    d.record.kind = method.kind;
    return method.form;
  }
  // Whether Winograd serves a convolution. A pooling that alone reads the result becomes its own.
  constexpr bool filter(draft& d, const op::convolution& conv, std::span<const place> in, value_id& made) {
    const lower::contraction_split split = split_of(d.nodes);
    const place &image = in[split.operands[0]], &weight = in[split.operands[1]];
    const shape& s = graph_.shape_of(made);
    const place out{{}, s.type, to_ints(s.lens), row_major(to_ints(s.lens))};
    if (plan_winograd_nchw(conv, image, weight, out).filters == 0 || !filters_alone(d.nodes, in)) return false;
    d.record.kind = step_kind::winograd_nchw;
    const std::uint32_t reader = values_.readers().only_reader(made);
    if (reader == lower::none) return true;
    if (const auto* pool = graph_[reader].op.template get_if<op::pooling>(); pool && halves(*pool, out)) {
      made = {reader, 0};
      joined_[reader] = true;
    }
    return true;
  }
  constexpr node node_of(const operation_type& op) {
    node n;
    n.op = index_of(op);
    n.kind = op.kind();
    n.attributes = save(op);
    return n;
  }
  static constexpr std::int64_t index_of([[maybe_unused]] const operation_type& op) {
    if constexpr (writes_records)
      return static_cast<std::int64_t>(op.index());
    else
      return 0;
  }
  constexpr std::int64_t save(const operation_type& op) {
    if constexpr (writes_records) {
      words w;
      op.save(w);
      return out_.put_once(std::move(w));
    } else {
      operations_.push_back(&op);
      return static_cast<std::int64_t>(operations_.size() - 1);
    }
  }
  constexpr void add(draft d) {
    small_vector<std::uint32_t> touched;
    for (const operand& o : d.inputs) touched.push_back(o.at.buffer);
    for (const operand& o : d.outputs) touched.push_back(o.at.buffer);
    if (d.scratch != lower::none) touched.push_back(d.scratch);
    values_.add_step(touched);
    drafts_.push_back(std::move(d));
  }

  // ---- records
  constexpr table put_operands(const small_vector<operand>& list) {
    small_vector<place> places;
    for (const operand& o : list) {
      places.push_back(final_place(o));
      places.back().at = {};
    }
    return out_.put_records<place>(places);
  }
  constexpr signature sign(const lower::placement& where, dtype type, std::string_view name) {
    signature s;
    s.where = final_place({where, type});
    s.name = out_.put_text(name);
    s.elements = kiln::product(s.where.lens);
    return s;
  }
  constexpr void write() {
    small_vector<step> steps;
    for (draft& d : drafts_) {
      kernel& what = d.record;
      what.inputs = put_operands(d.inputs);
      what.outputs = put_operands(d.outputs);
      what.nodes = out_.put_records<node>(d.nodes);
      what.results = out_.put_records<std::int64_t>(d.results);
      step s;
      words w;
      put_words(w, what);
      s.kernel = out_.put_once(std::move(w));
      small_vector<location> buffers;
      for (const auto* list : {&d.inputs, &d.outputs})
        for (const operand& o : *list) buffers.push_back(final_place(o).at);
      s.buffers = out_.put_records<location>(buffers);
      if (d.scratch != lower::none) s.scratch = values_.buffers()[d.scratch].offset;
      steps.push_back(s);
    }
    header_.steps = out_.put_list(steps);
    small_vector<signature> inputs, weights, outputs;
    for (value_id v : graph_.parameters()) {
      const instruction& i = graph_.producer(v);
      (i.is_weight ? weights : inputs).push_back(sign(values_.placement_of(v), i.results[0].type, i.name.view()));
    }
    for (std::size_t k = 0; k < results_.size(); ++k)
      outputs.push_back(sign(results_[k].at, results_[k].type, graph_.output_names[k].view()));
    header_.inputs = out_.put_list(inputs);
    header_.weights = out_.put_list(weights);
    header_.outputs = out_.put_list(outputs);
    header_.prepared = out_.put_list(prepared_.items);
    header_.prepared_bytes = prepared_.bytes;
    small_vector<constant> kept;
    for (const std::uint32_t i : constants()) {
      words w;
      visit_elements(graph_[i].constant, graph_[i].constant.elements(), [&](const auto& x) { put_words(w, x); });
      kept.push_back({graph_[i].results[0].type, out_.put_list(w)});
    }
    header_.constants = out_.put_list(kept);
  }

  const Program& program_;
  const module_type& graph_;
  header header_;
  record_writer out_;
  lower::layout_plan<Program> layouts_;
  lower::memory_plan<Program, planner> values_;
  small_vector<draft> drafts_;
  small_vector<operand> results_;
  small_vector<const operation_type*> operations_;
  prepared_list prepared_;
  small_vector<bool> joined_;  ///< computed by the instruction before
};

}  // namespace kiln::aot
