#include "kiln/onnx/impl/import/op_table.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include "kiln/onnx/coverage.hpp"

namespace kiln::onnx {

namespace {

// Of one operator, by op type.
const std::vector<const op_importer*>& importers_of(std::string_view op_type) {
  using index = std::unordered_map<std::string_view, std::vector<const op_importer*>>;
  static const index by_name = [] {
    index made;
    for (const op_importer_table table : op_importer_tables())
      for (const op_importer& i : table) made[i.op_type].push_back(&i);
    return made;
  }();
  static const std::vector<const op_importer*> none;
  const auto found = by_name.find(op_type);
  return found == by_name.end() ? none : found->second;
}

template <class... Table> std::array<op_importer_table, sizeof...(Table)> list_of(Table... tables) {
  return {tables...};
}

}  // namespace

std::span<const op_importer_table> op_importer_tables() {
  static const auto tables =
      list_of(pointwise_importers(), activation_importers(), arithmetic_importers(), cast_importers(),
              reduce_importers(), view_importers(), slice_importers(), linear_importers(), window_importers(),
              normalize_importers(), index_importers(), constant_importers(), sequence_importers(), control_importers(),
              scan_importers(), select_importers(), text_importers(), optional_importers(), loss_importers(),
              quantize_importers(), quantized_product_importers(), resize_importers(), einsum_importers(),
              linear_model_importers(), feature_importers(), label_importers(), tree_importers(), map_importers(),
              microsoft_layer_importers(), microsoft_attention_importers(), microsoft_expert_importers(),
              microsoft_block_importers(), microsoft_quantize_importers(), attention_importers(), recurrent_importers(),
              sample_importers(), signal_importers(), random_importers(), training_importers(), gradient_importers(),
              unfold_importers(), state_importers(), ngram_importers(), image_importers());
  return tables;
}

const op_importer* find_op_importer(std::string_view domain, std::string_view op_type, std::int64_t version) {
  const op_importer* best = nullptr;
  for (const op_importer* i : importers_of(op_type))
    if (i->serves(domain, op_type, version) && (!best || i->since > best->since)) best = i;
  return best;
}

std::int64_t oldest_version(std::string_view domain, std::string_view op_type) {
  std::int64_t oldest = 0;
  for (const op_importer* i : importers_of(op_type))
    if (i->domain == domain && i->function && (!oldest || i->since < oldest)) oldest = i->since;
  return oldest;
}

std::vector<importable_operator> importable_operators() {
  std::map<std::pair<std::string_view, std::string_view>, importable_operator> found;
  for (const op_importer_table table : op_importer_tables())
    for (const op_importer& i : table) {
      const std::string_view domain = i.domain.empty() ? std::string_view("ai.onnx") : i.domain;
      importable_operator& o = found[{domain, i.op_type}];
      o.domain = domain;
      o.op_type = i.op_type;
      if (i.function)
        o.since.push_back(i.since);
      else
        o.ended = i.since;
      if (!i.note.empty() && std::find(o.notes.begin(), o.notes.end(), i.note) == o.notes.end())
        o.notes.push_back(i.note);
    }
  std::vector<importable_operator> out;
  for (auto& [name, o] : found) {
    std::sort(o.since.begin(), o.since.end());
    out.push_back(std::move(o));
  }
  return out;
}

}  // namespace kiln::onnx
