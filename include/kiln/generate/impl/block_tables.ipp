#include "kiln/generate/impl/block_tables.hpp"

#include <algorithm>

#include "kiln/generate/impl/model_plan.hpp"
#include "kiln/generate/impl/probe.hpp"
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/op/pointwise/convert.hpp"

namespace kiln::language::detail {

std::string use_block_tables(program& p, std::span<const joined_layer> layers, std::int64_t tile_rows,
                             page_plan& plan) {
  module_graph& m = p.main();
  for (const joined_layer& l : layers)
    if (l.type != plan.stored)
      return "caches of " + std::string(kiln::to_string(plan.stored)) +
             " beside a model's own type have no kernel on the device";
  const auto each_attention = [&](auto&& visit) {
    for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(m.size()); i < count; ++i)
      if (m[i].kind == instruction_kind::op)
        if (const auto* op = m[i].op.get_if<op::paged_attention>()) visit(i, *op);
  };
  std::int64_t group = 1, kv_heads = 1;
  each_attention([&](std::uint32_t i, const op::paged_attention&) {
    const std::int64_t kv = m.shape_of(m[i].inputs[1]).lens[1].value();
    group = std::max(group, m.shape_of(m[i].inputs[0]).lens[1].value() / kv);
    kv_heads = std::max(kv_heads, kv);
  });
  plan.row_tokens = std::max<std::int64_t>(1, tile_rows / group);
  plan.table_head = table_head(kv_heads);

  m.add_parameter(table_input, shape(dtype::i64, {dimension::symbol("table_rows", 1),
                                                  dimension::symbol("table_width", plan.table_head + 1)}));
  {
    rewriter<module_graph> r(m);
    const value_id table = m.find_parameter(table_input);
    const auto stored = [&](value_id v) {
      if (r.get_if<op::convert>(v) && r.shape_of(r.input(v, 0)).type == plan.stored) return r.input(v, 0);
      return r.shape_of(v).type == plan.stored ? v : r.add(op::convert{plan.stored}, {v});
    };
    const std::uint32_t count = r.size();
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto* found = r.get_if<op::paged_attention>({i, 0});
      if (!found) continue;
      const op::paged_layer& at = plan.layers[static_cast<std::size_t>(found->layer)];
      const op::block_attention op{at.keys,         at.values,     plan.block,   plan.table_head,
                                   plan.row_tokens, found->window, found->scale, found->softcap};
      const auto old = r[i].inputs;
      small_vector<value_id> in{stored(old[0]), stored(old[1]), stored(old[2]), table};
      if (old.size() > 4) in.push_back(old[4]);
      const value_id made = r.add(op, std::move(in), text(r[i].name).view());
      for (std::uint32_t user = 0; user < count; ++user) {
        const auto* back = r.get_if<op::convert>({user, 0});
        if (back && r.input({user, 0}, 0) == value_id{i, 0} && r.shape_of({user, 0}).type == plan.stored)
          r.replace({user, 0}, made);
      }
      r.replace({i, 0}, plan.stored == dtype::f32 ? made : r.add(op::convert{dtype::f32}, {made}));
    }
  }
  m = part_of(m, m.outputs, m.output_names);
  return {};
}

}  // namespace kiln::language::detail
