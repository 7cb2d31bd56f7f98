#include <algorithm>

#include "kiln/runtime/impl/constant_readers.hpp"
#include "kiln/runtime/impl/make_step_kernel.hpp"
#include "kiln/runtime/impl/open_rules.hpp"
#include "kiln/runtime/impl/shuffles.hpp"
#include "kiln/runtime/impl/value_uses.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::detail {
namespace {

constexpr std::uint32_t none = 0xffff'ffff;

// A value's place: a layout inside a storage.
struct place {
  std::uint32_t storage = none;
  layout where;
};

class planner {
 public:
  planner(program& p, const target& t, const compile_options& options, const plan_choices& choices, thread_pool& pool,
          std::vector<std::string>& remarks)
      : program_(p),
        graph_(p.main()),
        target_(t),
        pool_(pool),
        choices_(choices),
        readers_(p.main()),
        uses_(p.main()),
        formats_(p, p.main(), t, choices.turns_images) {
    formats_.report(remarks);
    plan_.turns_images = formats_.any();
    plan_.growing = growing_outputs(graph_, options.aliases);
  }

  plan build() {
    place_growing();
    make_kernels();
    for (std::uint32_t i = 0; i < graph_.size(); ++i) naming(graph_[i], i, [&] { emit(i); });
    for (std::uint32_t k = 0; k < graph_.outputs.size(); ++k)
      naming(graph_.producer(graph_.outputs[k]), graph_.outputs[k].instruction, [&] { emit_output(k); });
    plan_.sum_up();
    return std::move(plan_);
  }

 private:
  using instruction = basic_instruction<operation>;

  // ---- what is known before planning
  void place_growing() {
    places_.resize(graph_.size());
    for (std::uint32_t i = 0; i < graph_.size(); ++i) places_[i].resize(graph_[i].results.size());
    for (growing_output& g : plan_.growing) {
      const value_id v = graph_.outputs[g.output];
      uses_.set_output(v, g.output);
      g.storage = add_storage(place_kind::output, graph_.shape_of(v).bytes(), g.output);
    }
  }

  void make_kernels() {
    kernels_.resize(graph_.size());
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const instruction& ins = graph_[i];
      if (ins.kind != instruction_kind::op || is_view(ins) || is_concat(ins)) continue;
      if (choices_.tuning) choices_.tuning->next(i, graph_.size(), label_of(ins, i));
      naming(ins, i, [&] { kernels_[i] = make_step_kernel(program_, i, target_, formats_, pool_, choices_, memory_); });
      for (std::size_t k = 0; k < ins.inputs.size(); ++k)
        if (kernels_[i]->packed_input(k)) readers_.leave(graph_, ins.inputs[k].instruction);
    }
  }

  // ---- storages
  std::uint32_t add_storage(place_kind kind, dimension bytes, std::uint32_t index = 0) {
    storage s;
    s.kind = kind;
    s.index = index;
    s.bytes_slot = plan_.sizes.slot(bytes);
    plan_.storages.push_back(std::move(s));
    return static_cast<std::uint32_t>(plan_.storages.size() - 1);
  }
  place fresh(const shape& s) { return {add_storage(place_kind::arena, s.bytes()), layout::standard(s.lens)}; }
  place output_place(std::uint32_t k) {
    const shape& s = graph_.shape_of(graph_.outputs[k]);
    for (const growing_output& g : plan_.growing)
      if (g.output == k) return {g.storage, g.place(s.lens)};
    return {add_storage(place_kind::output, s.bytes(), k), layout::standard(s.lens)};
  }

  place input_place(std::uint32_t k, const shape& s) {
    for (const growing_output& g : plan_.growing)
      if (g.input == k) return {g.storage, g.place(s.lens)};
    return {add_storage(place_kind::input, s.bytes(), k), layout::standard(s.lens)};
  }

  // The caller's buffer of the output that a value is, or becomes under other dims.
  std::optional<place> output_behind(value_id v) {
    if (const std::uint32_t k = uses_.output(v); k != none) return output_place(k);
    const dims& lens = graph_.shape_of(v).lens;
    for (const value_uses::user& u : uses_.beside(v)) {
      if (u.result != v.result || u.instruction == none || !renames_dims(graph_[u.instruction], lens)) continue;
      auto behind = output_behind({u.instruction, 0});
      if (!behind) continue;
      behind->where = layout::standard(lens);
      return behind;
    }
    return std::nullopt;
  }

  // ---- where a result goes: the caller's buffer, a part of a concatenation, a transposed buffer, or the arena
  const place& place_result(value_id v) {
    place& at = places_[v.instruction][v.result];
    if (at.storage == none) at = choose_place(v);
    return at;
  }

  stride_support written(std::uint32_t i, std::uint32_t result) const {
    return is_concat(graph_[i]) ? stride_support::any : kernels_[i]->output_strides(result);
  }

  place choose_place(value_id v) {
    const std::uint32_t i = v.instruction;
    if (const auto output = output_behind(v)) return *output;
    const stride_support support = written(i, v.result);
    if (support != stride_support::dense) {
      if (const auto part = part_of_concat(v, support)) return *part;
      if (const auto turned = transposed(v, support)) return *turned;
      if (const auto shuffled = channels_shuffled(v)) return *shuffled;
    }
    place at = fresh(graph_.shape_of(v));
    if (formats_.channels_last(v) && support != stride_support::dense) at.where = image_formats::of(at.where.lens);
    return at;
  }

  // The place of operand k inside the concatenation's result.
  place concat_part(std::uint32_t concat, std::size_t operand) {
    const place whole = place_result({concat, 0});
    return {whole.storage, part_of(graph_, graph_[concat], operand, whole.where)};
  }

  std::optional<place> part_of_concat(value_id v, stride_support support) {
    for (const auto& [u, result] : uses_.beside(v)) {
      if (u == none || !is_concat(graph_[u])) continue;
      const auto& inputs = graph_[u].inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!(inputs[k] == v)) continue;
        const place part = concat_part(u, k);
        if (supported(part.where, support) || (places_planes(v, part.where.lens[1]) && dense_from(part.where, 2)))
          return part;
      }
    }
    return std::nullopt;
  }

  // A result whose only reader transposes it is written transposed.
  std::optional<place> transposed(value_id v, stride_support support) {
    const std::uint32_t t = uses_.only_reader(v);
    if (t == none) return std::nullopt;
    const auto axes = permutation_of(graph_[t], graph_.shape_of(v).lens);
    if (!axes) return std::nullopt;
    if (support == stride_support::rows && !axes->empty() && axes->back() + 1 != axes->size()) return std::nullopt;
    const place to = rearranged({t, 0});
    const place at{to.storage, before_permutation(*axes, graph_.shape_of(v).lens, to.where)};
    if (!supported(at.where, support)) return std::nullopt;
    return at;
  }

  bool places_planes(value_id v, dimension each) const {
    const auto& writer = kernels_[v.instruction];
    return writer && writer->places_planes(v.result, each);
  }

  // Where what a view makes of a result may lie, whose producer then writes it.
  place rearranged(value_id view) {
    if (const auto output = output_behind(view)) return *output;
    if (const auto part = part_of_concat(view, stride_support::any)) return *part;
    return fresh(graph_.shape_of(view));
  }

  // Images whose only reader shuffles their channels are written shuffled: their place then has two dims of channels.
  std::optional<place> channels_shuffled(value_id v) {
    if (formats_.channels_last(v)) return std::nullopt;
    const auto shuffle = shuffle_behind(graph_, v, [&](value_id of) { return uses_.only_reader(of); });
    if (!shuffle || !(places_planes(v, shuffle->split[2]) || joins_runs(graph_, v, *shuffle))) return std::nullopt;
    const place to = rearranged({shuffle->join, 0});
    const auto at = shuffle->before(to.where);
    if (!at || !dense_from(*at, 3)) return std::nullopt;
    return place{to.storage, *at};
  }

  // ---- steps
  operand slots_of(const place& at, dtype type) {
    operand o;
    o.storage = at.storage;
    o.type = type;
    for (dimension d : at.where.lens) o.lens.push_back(plan_.sizes.slot(d));
    for (dimension d : at.where.strides) o.strides.push_back(plan_.sizes.slot(d));
    o.offset = plan_.sizes.slot(at.where.offset);
    return o;
  }

  struct typed_place {
    place at;
    shape type;
  };
  void add_step(std::unique_ptr<kernel> run, const std::vector<typed_place>& in, const std::vector<typed_place>& out,
                step_info info) {
    step s;
    s.first_operand = static_cast<std::uint32_t>(plan_.operands.size());
    s.inputs = static_cast<std::uint32_t>(in.size());
    s.outputs = static_cast<std::uint32_t>(out.size());
    const auto now = static_cast<std::uint32_t>(plan_.steps.size());
    info.bytes = 0;
    const auto touch = [&](const typed_place& p) {
      plan_.operands.push_back(slots_of(p.at, p.type.type));
      storage& memory = plan_.storages[p.at.storage];
      memory.first = memory.first == none ? now : memory.first;
      memory.last = now;
      info.bytes += distinct_elements(p.at.where) * static_cast<std::int64_t>(size_of(p.type.type));
    };
    for (const typed_place& p : in) touch(p), info.inputs.push_back(p.type);
    for (const typed_place& p : out) touch(p), info.outputs.push_back(p.type);
    info.kernel = run->name();
    info.fallback = run->is_fallback();
    info.packed_bytes = run->packed_bytes();
    s.run = std::move(run);
    plan_.steps.push_back(std::move(s));
    plan_.infos.push_back(std::move(info));
  }

  void copy_step(const place& from, const place& to, const shape& type, std::string_view why) {
    step_info info;
    info.copy = true, info.instruction = why;
    add_step(target_.make_copy(), {{from, type}}, {{to, type}}, std::move(info));
  }

  // The value as a dense buffer; one copy serves all readers.
  place dense(value_id v, std::string_view why) {
    const place at = value_place(v);
    if (at.where.dense()) return at;
    for (const auto& [value, copy] : dense_copies_)
      if (value == v) return copy;
    const shape& type = graph_.shape_of(v);
    const bool is_output = uses_.output(v) != none;
    const auto behind = is_output ? std::nullopt : output_behind(v);
    const place copy = behind ? *behind : fresh({type.type, type.lens});
    copy_step(at, copy, type, why);
    dense_copies_.push_back({v, copy});
    return copy;
  }

  place value_place(value_id v) {
    place& at = places_[v.instruction][v.result];
    const instruction& ins = graph_.producer(v);
    if (at.storage == none && ins.kind == instruction_kind::literal) {
      const bool symbolic = ins.constant.has_symbols();
      at = {add_storage(symbolic ? place_kind::symbolic : place_kind::constant, ins.results[0].bytes()),
            layout::standard(ins.results[0].lens)};
      storage& memory = plan_.storages[at.storage];
      memory.type = ins.results[0].type;
      if (symbolic)
        for (dimension d : *ins.constant.data().values<dimension>()) memory.values.push_back(plan_.sizes.slot(d));
      else
        memory.constant = target_.has_device() ? ins.constant : argument(ins.constant).to_literal();
    }
    return at;
  }

  void emit(std::uint32_t i) {
    const instruction& ins = graph_[i];
    if (ins.kind == instruction_kind::parameter) {
      places_[i][0] = input_place(static_cast<std::uint32_t>(plan_.inputs.size()), ins.results[0]);
      plan_.inputs.push_back(slots_of(places_[i][0], ins.results[0].type));
    } else if (ins.kind == instruction_kind::op) {
      if (is_view(ins))
        emit_view(i);
      else if (is_concat(ins))
        emit_concat(i);
      else
        emit_kernel(i);
    }
  }

  void emit_view(std::uint32_t i) {
    const instruction& ins = graph_[i];
    const value_id from = ins.inputs[0];
    if (readers_.none(i)) return;  // of a constant that kernels have packed
    place at = value_place(from);
    auto mapped = ins.op.map(at.where);
    if (const auto source = mapped ? std::nullopt : formats_.shown_as_last(graph_, i)) {
      const place to{fresh(graph_.shape_of(from)).storage, *source};
      copy_step(at, to, graph_.shape_of(from), ins.op.name());
      at = to;
      mapped = ins.op.map(at.where);
    }
    if (!mapped) {
      at = dense(from, ins.op.name());
      mapped = ins.op.map(at.where);  // row-major from offset 0: the view's rule holds there by definition
    }
    check_extents(ins, graph_.shape_of(from), ins.name.view());
    places_[i][0] = {at.storage, mapped.value()};
  }

  // Extents that were taken as equal although their expressions differ are compared when sizes are known.
  void check_extents(const instruction& ins, const shape& from, std::string_view where) {
    equal_extents(ins, from.lens, [&](dimension x, dimension y) {
      if (x == y || (x.is_constant() && y.is_constant())) return;
      plan_.obligations.push_back({plan_.sizes.slot(x), plan_.sizes.slot(y), equality(ins, x, y, where)});
    });
  }

  void emit_concat(std::uint32_t i) {
    const instruction& ins = graph_[i];
    place_result({i, 0});
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const place part = concat_part(i, k), at = value_place(ins.inputs[k]);
      if (at.storage == part.storage && at.where == part.where) continue;
      copy_step(at, part, graph_.shape_of(ins.inputs[k]),
                ins.name.empty() ? std::string_view("concat") : ins.name.view());
    }
  }

  void emit_kernel(std::uint32_t i) {
    const instruction& ins = graph_[i];
    std::unique_ptr<kernel> run = std::move(kernels_[i]);
    std::vector<typed_place> in, out;
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const value_id v = ins.inputs[k];
      const shape& type = graph_.shape_of(v);
      if (run->packed_input(k)) {
        in.push_back({nowhere(type), type});
        continue;
      }
      place at = value_place(v);
      if (!supported(at.where, run->input_strides(k))) at = dense(v, ins.op.name());
      in.push_back({at, type});
    }
    kernels_[i] = std::move(run);  // placing results asks for its stride support
    for (std::uint32_t r = 0; r < ins.results.size(); ++r) out.push_back({place_result({i, r}), ins.results[r]});
    if (ins.op.is<op::fused>()) {
      const module_graph& body = program_.module(ins.op.body());
      for (std::uint32_t k = 0; k < body.size(); ++k)
        if (is_view(body[k]))
          check_extents(body[k], body.shape_of(body[k].inputs[0]), ins.name.view());
        else
          leave_rule(plan_, body, body[k], body[k].name.empty() ? label_of(ins, i) : std::string(body[k].name.view()));
    }
    leave_rule(plan_, graph_, ins, label_of(ins, i));
    step_info info;
    info.instruction = label_of(ins, i), info.index = i, info.flops = flops(program_, graph_, ins);
    add_step(std::move(kernels_[i]), in, out, std::move(info));
  }

  // What a kernel holds in its own form has a shape, but no memory.
  place nowhere(const shape& s) {
    if (nowhere_ == none) nowhere_ = add_storage(place_kind::arena, 0);
    return {nowhere_, layout::standard(s.lens)};
  }

  void emit_output(std::uint32_t k) {
    const value_id v = graph_.outputs[k];
    const place at = value_place(v);
    const storage& memory = plan_.storages[at.storage];
    const bool there = memory.kind == place_kind::output && memory.index == k;
    const bool grows = std::any_of(plan_.growing.begin(), plan_.growing.end(), [&](auto& g) { return g.output == k; });
    place to = at;
    if (!there || !(grows || at.where.is_standard())) {
      to = output_place(k);
      copy_step(at, to, graph_.shape_of(v), graph_.output_names[k]);
    }
    plan_.outputs.push_back(slots_of(to, graph_.shape_of(v).type));
  }

  program& program_;
  module_graph& graph_;
  const target& target_;
  thread_pool& pool_;
  const plan_choices choices_;
  constant_memory memory_;
  constant_readers readers_;
  value_uses uses_;
  image_formats formats_;
  plan plan_;
  std::vector<std::vector<place>> places_;
  std::vector<std::unique_ptr<kernel>> kernels_;
  std::vector<std::pair<value_id, place>> dense_copies_;
  std::uint32_t nowhere_ = none;
};

}  // namespace

plan make_plan(program& p, const target& t, const compile_options& options, const plan_choices& choices,
               thread_pool& pool, std::vector<std::string>& remarks) {
  return planner(p, t, options, choices, pool, remarks).build();
}

}  // namespace kiln::detail
