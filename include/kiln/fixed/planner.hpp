#pragma once
#include "kiln/fixed/draft.hpp"
#include "kiln/fixed/prepared_weights.hpp"
#include "kiln/fixed/record_writer.hpp"
#include "kiln/fixed/step_body.hpp"
#include "kiln/fixed/step_scratch.hpp"
#include "kiln/graph/literal_values.hpp"
#include "kiln/graph/module.hpp"

namespace kiln::fixed {

/// Lays a program of fixed sizes out in memory: views become layouts, concatenations are written in place, buffers
/// share the arena where their lives do not overlap. The rules are those of the run-time plan. In constant evaluation
/// it writes the program's records; the export to C++ reads the plan itself.
template <class Program>
class planner {
 public:
  using module_type = typename Program::module_type;
  using instruction = typename module_type::instruction;
  using operation_type = typename Program::operation_type;
  static constexpr std::uint32_t none = buffer::never;
  constexpr explicit planner(const Program& p) : program_(p), graph_(p.main()) {}

  constexpr words build() {
    lay_out();
    write();
    return out_.finished(header_);
  }
  /// Plans without writing records. Afterwards `attributes` of a step or node counts `operations`.
  constexpr void lay_out() {
    places_.resize(graph_.size());
    joined_.resize(graph_.size(), false);
    last_.resize(graph_.size(), false);
    last_ = images_with_channels_last(program_, writes);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      places_[i].resize(graph_[i].results.size());
      if (graph_[i].kind == instruction_kind::op && graph_[i].op.template is<op::concat>()) concats_.push_back(i);
    }
    for (std::uint32_t i = 0; i < graph_.size(); ++i) emit(i);
    for (value_id v : graph_.outputs) emit_output(v);
    header_.arena_bytes = share_arena(buffers_);
  }
  constexpr const small_vector<draft>& drafts() const { return drafts_; }
  constexpr const small_vector<operand>& results() const { return results_; }
  constexpr const small_vector<std::uint32_t>& constants() const { return constants_; }
  constexpr const operation_type& operation(std::int64_t k) const { return *operations_[static_cast<std::size_t>(k)]; }
  constexpr const small_vector<prepared_weight>& prepared() const { return prepared_.items; }
  constexpr std::int64_t arena_bytes() const { return header_.arena_bytes; }
  constexpr place final_place(const operand& o) const {
    const buffer& b = buffers_[o.where.in];
    place p{{b.where, b.index, b.base}, o.type, to_ints(o.where.at.lens)};
    p.strides = to_ints(o.where.at.strides);
    p.offset = o.where.at.offset.value();
    return p;
  }

 private:
  static constexpr bool writes = requires(const operation_type& op, words& to) { op.save(to); };

  constexpr small_vector<place> final_places(const small_vector<operand>& list) const {
    small_vector<place> all;
    for (const operand& o : list) all.push_back(final_place(o));
    return all;
  }
  static constexpr bool is_view(const instruction& i) {
    return i.kind == instruction_kind::op && i.op.kind() == op_kind::view;
  }

  // ---- buffers
  constexpr std::uint32_t add_buffer(memory where, std::int64_t index, std::int64_t bytes) {
    buffers_.push_back({where, index, bytes});
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }
  constexpr lying fresh(const shape& s, bool last = false) {
    lying to{add_buffer(memory::arena, 0, s.bytes().value()), layout::standard(s.lens)};
    if (last) to.at.strides = to_dims(channels_last(to_ints(s.lens)));
    return to;
  }
  constexpr void touch(std::uint32_t b, std::uint32_t now) {
    if (buffers_[b].first == none) buffers_[b].first = now;
    buffers_[b].last = now;
  }

  // ---- values
  constexpr lying place_of(value_id v) {
    lying& at = places_[v.instruction][v.result];
    const instruction& i = graph_.producer(v);
    if (at.in == none && i.kind == instruction_kind::literal) {
      at = {add_buffer(memory::constant, static_cast<std::int64_t>(constants_.size()), 0),
            layout::standard(i.results[0].lens)};
      constants_.push_back(v.instruction);
    }
    return at;
  }

  constexpr void emit(std::uint32_t i) {
    const instruction& ins = graph_[i];
    if (ins.kind == instruction_kind::parameter) {
      table& t = ins.is_weight ? header_.weights : header_.inputs;
      places_[i][0] = {add_buffer(ins.is_weight ? memory::weight : memory::input, t.count++, 0),
                       layout::standard(ins.results[0].lens)};
    } else if (ins.kind == instruction_kind::op) {
      if (is_view(ins))
        emit_view(i);
      else if (ins.op.template is<op::concat>())
        emit_concat(i);
      else if (!joined_[i])
        emit_kernel(i);
    }
  }
  constexpr void emit_view(std::uint32_t i) {
    const instruction& ins = graph_[i];
    lying at = place_of(ins.inputs[0]);
    auto mapped = ins.op.map(at.at);
    if (!mapped) {
      at = copied(at, graph_.shape_of(ins.inputs[0]));
      mapped = ins.op.map(at.at);
    }
    places_[i][0] = {at.in, mapped.value()};
  }
  constexpr lying copied(const lying& at, const shape& s, bool last = false) {
    const lying to = fresh(s, last);
    copy(at, to, s.type);
    return to;
  }
  // A value with its channels last, copied once however many steps read it so.
  constexpr lying turned(const lying& at, const shape& s) {
    for (const auto& [from, to] : turned_)
      if (from.in == at.in && from.at == at.at) return to;
    turned_.push_back({at, copied(at, s, true)});
    return turned_.back().to;
  }
  constexpr void copy(const lying& from, const lying& to, dtype type) {
    draft d;
    d.record.kind = step_kind::copy;
    d.inputs.push_back({from, type});
    d.outputs.push_back({to, type});
    add(std::move(d));
  }

  // ---- where a result goes: into the concatenation that reads it, else into a buffer of its own
  constexpr lying& place_result(value_id v) {
    lying& at = places_[v.instruction][v.result];
    if (at.in != none) return at;
    for (std::uint32_t u : concats_) {
      const instruction& user = graph_[u];
      for (std::size_t k = 0; k < user.inputs.size(); ++k)
        if (user.inputs[k] == v && last_[u] == last_[v.instruction]) return at = concat_part(u, k);
    }
    return at = fresh(graph_.shape_of(v), last_[v.instruction]);
  }
  constexpr lying concat_part(std::uint32_t concat, std::size_t operand_index) {
    lying part = place_result({concat, 0});
    const instruction& ins = graph_[concat];
    const auto axis =
        static_cast<std::size_t>(normal_axis(ins.op.template get_if<op::concat>()->axis, ins.results[0].rank()));
    for (std::size_t k = 0; k < operand_index; ++k)
      part.at.offset += graph_.shape_of(ins.inputs[k]).lens[axis] * part.at.strides[axis];
    part.at.lens = graph_.shape_of(ins.inputs[operand_index]).lens;
    return part;
  }
  constexpr void emit_concat(std::uint32_t i) {
    const instruction& ins = graph_[i];
    place_result({i, 0});
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const lying part = concat_part(i, k), at = place_of(ins.inputs[k]);
      if (at.in != part.in || !(at.at == part.at)) copy(at, part, ins.results[0].type);
    }
  }

  // ---- kernels
  constexpr void emit_kernel(std::uint32_t i) {
    const instruction& ins = graph_[i];
    draft d;
    d.from = i;
    for (value_id v : ins.inputs) d.inputs.push_back({place_of(v), graph_.shape_of(v).type});
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
      d.outputs.push_back({place_result(made), graph_.shape_of(made).type});
    if constexpr (writes) {
      const std::int64_t bytes = scratch_bytes(d.record.kind, d.nodes, product_of(program_, ins),
                                               final_places(d.inputs), final_places(d.outputs));
      if (bytes != 0) d.scratch = add_buffer(memory::arena, 0, bytes);
    }
    add(std::move(d));
  }
  // Weights that a product reads in another form are prepared when they are bound.
  constexpr void prepare(draft& d, value_id& made) {
    const operation_type& op = product_of(program_, graph_[d.from]);
    const auto in = final_places(d.inputs);
    const auto [left, right] = product_operands(d.nodes);
    const place& weight = in[right];
    if (left == right || weight.at.where != (writes ? memory::weight : memory::constant)) return;
    layout as = d.inputs[right].where.at;
    weight_form form = weight_form::planes;
    if (const auto* conv = op.template get_if<op::convolution>()) {
      if (last_[d.from])
        form = prepare_image(d, *conv);
      else if (!filter(d, *conv, in, made))
        return;
    } else {
      const shape& s = graph_[d.from].results[0];  // an export packs the matrix of a few rows in the order of its tiles
      if (!op.template is<op::dot>() || (!writes && reads_rows(d.nodes, in, s))) return;
      if (reads_rows(d.nodes, in, s)) {
        as.offset = 0, as.strides = {row_pitch(weight), 1};
        form = weight_form::rows;
      } else if (reads_panels(d.nodes, in, final_place({place_result(made), s.type}))) {
        d.record.kind = step_kind::windows;
        form = weight_form::panels;
      } else {
        return;
      }
    }
    d.inputs[right].where = {add_buffer(memory::prepared, weight.at.index, 0), as};
    buffers_.back().base = prepared_.add(weight, form);
  }
  // Plans a convolution whose result lies with its channels last; the operands that its vectors of channels read lie
  // so, too, but images of few channels.
  constexpr weight_form prepare_image(draft& d, const op::convolution& conv) {
    const auto [image, weight] = product_operands(d.nodes);
    const auto turn = [&](std::size_t k) {
      d.inputs[k].where = turned(d.inputs[k].where, graph_.shape_of(graph_[d.from].inputs[k]));
    };
    for (std::uint32_t k : epilogue_inputs(d.nodes))
      if (!along_channels(final_place(d.inputs[k]))) turn(k);
    const place x = final_place(d.inputs[image]);
    if (conv.group == 1 ? x.lens[1] >= 16 && !along_channels(x) : x.lens[1] != 1 && x.strides[1] != 1) turn(image);
    const shape& s = graph_[d.from].results[0];
    const image_method method = choose_image_method(conv, final_place(d.inputs[image]), final_place(d.inputs[weight]),
                                                    {{}, s.type, to_ints(s.lens), {}});
    d.record.kind = method.kind;
    return method.form;
  }
  // Whether minimal filtering serves a convolution. A pooling that alone reads the result becomes its own.
  constexpr bool filter(draft& d, const op::convolution& conv, std::span<const place> in, value_id& made) {
    const auto [image, weight] = product_operands(d.nodes);
    const shape& s = graph_.shape_of(made);
    const place out{{}, s.type, to_ints(s.lens), row_major(to_ints(s.lens))};
    if (plan_filtering(conv, in[image], in[weight], out).filters == 0 || !filters_alone(d.nodes, in)) return false;
    d.record.kind = step_kind::filtering;
    const std::uint32_t reader = only_reader(graph_, made);
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
    if constexpr (writes)
      return static_cast<std::int64_t>(op.index());
    else
      return 0;
  }
  constexpr std::int64_t save(const operation_type& op) {
    if constexpr (writes) {
      words w;
      op.save(w);
      return out_.put_once(std::move(w));
    } else {
      operations_.push_back(&op);
      return static_cast<std::int64_t>(operations_.size() - 1);
    }
  }
  constexpr void add(draft d) {
    const auto now = static_cast<std::uint32_t>(drafts_.size());
    for (const operand& o : d.inputs) touch(o.where.in, now);
    for (const operand& o : d.outputs) touch(o.where.in, now);
    if (d.scratch != none) touch(d.scratch, now);
    drafts_.push_back(std::move(d));
  }
  constexpr void emit_output(value_id v) {
    lying at = place_of(v);
    const shape& s = graph_.shape_of(v);
    if (buffers_[at.in].where != memory::arena || !at.at.dense()) at = copied(at, s);
    touch(at.in, none);
    results_.push_back({at, s.type});
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
  constexpr signature sign(const lying& where, dtype type, std::string_view name) {
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
      if (d.scratch != none) s.scratch = buffers_[d.scratch].base;
      steps.push_back(s);
    }
    header_.steps = out_.put_list(steps);
    small_vector<signature> inputs, weights, outputs;
    for (value_id v : graph_.parameters()) {
      const instruction& i = graph_.producer(v);
      (i.is_weight ? weights : inputs).push_back(sign(places_[v.instruction][0], i.results[0].type, i.name.view()));
    }
    for (std::size_t k = 0; k < results_.size(); ++k)
      outputs.push_back(sign(results_[k].where, results_[k].type, graph_.output_names[k].view()));
    header_.inputs = out_.put_list(inputs);
    header_.weights = out_.put_list(weights);
    header_.outputs = out_.put_list(outputs);
    header_.prepared = out_.put_list(prepared_.items);
    header_.prepared_bytes = prepared_.bytes;
    small_vector<constant> constants;
    for (std::uint32_t i : constants_) {
      words w;
      visit_elements(graph_[i].constant, graph_[i].constant.elements(), [&](const auto& x) { put_words(w, x); });
      constants.push_back({graph_[i].results[0].type, out_.put_list(w)});
    }
    header_.constants = out_.put_list(constants);
  }

  const Program& program_;
  const module_type& graph_;
  header header_;
  record_writer out_;
  small_vector<small_vector<lying>> places_;
  small_vector<buffer> buffers_;
  small_vector<draft> drafts_;
  small_vector<operand> results_;
  small_vector<std::uint32_t> constants_, concats_;
  struct turn {
    lying from, to;
  };
  small_vector<turn> turned_;  ///< copies with their channels last
  small_vector<const operation_type*> operations_;
  prepared_list prepared_;
  small_vector<bool> joined_;  ///< computed by the instruction before
  small_vector<bool> last_;    ///< lies with its channels last
};

}  // namespace kiln::fixed
