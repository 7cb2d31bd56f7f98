#include "kiln/interface/migraphx/operation.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "kiln/core/edit_distance.hpp"
#include "kiln/graph/custom_op.hpp"
#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

namespace kiln::migraphx {

namespace {

// What MIGraphX has besides, and why kiln has not.
constexpr uncovered_operator not_covered[] = {
    {"capture", "it calls a function of the process that made it"},
    {"concat_past_present", "MIGraphX makes it of GroupQueryAttention, which parse_onnx imports"},
    {"dynamic_range", "it makes a list whose length only a run knows, which MIGraphX's shapes can't say"},
    {"fixed_pad", "its extents come from one run"},
    {"gqa_rotary_embedding", "MIGraphX makes it of GroupQueryAttention, which parse_onnx imports"},
    {"group", "MIGraphX's own fusion makes it"},
    {"group_query_attention", "MIGraphX makes it of GroupQueryAttention, which parse_onnx imports"},
    {"load", "MIGraphX's own memory plan makes it"},
    {"outline", "MIGraphX's own passes make it"},
    {"pack_fp4", "two 4-bit floats in a byte are no element type of kiln's"},
    {"pointwise", "MIGraphX's own fusion makes it"},
    {"run_on_target", "a program runs on one target"},
    {"select_module", "a program with dynamic extents is compiled once for all of them"},
    {"unpack_fp4", "two 4-bit floats in a byte are no element type of kiln's"},
};

// The rows of every table.
template <class F> void for_each_operator(F&& f) {
  for (const operator_table table :
       {pointwise_operators(), activation_operators(), view_operators(), reduce_operators(), linear_operators(),
        window_operators(), index_operators(), selection_operators(), scatter_operators(), quant_operators(),
        sequence_operators(), control_operators(), memory_operators(), sample_operators()})
    for (const operator_row& row : table) f(row);
}

std::string nearest_operator(std::string_view name) {
  std::string_view best;
  for (const std::string_view known : covered_operators())
    if (best.empty() || edit_distance(name, known) < edit_distance(name, best)) best = known;
  return std::string(best);
}

bool is_number_list(const attributes& v) {
  return v.is_array() && std::all_of(v.begin(), v.end(), [](const attributes& x) { return x.is_number(); });
}

// Whether a value may stand where `like` is the default; what it becomes.
bool fit(attributes& v, const attributes& like) {
  if (like.is_null()) return true;
  if (like.is_boolean()) {
    if (v.is_number_integer()) v = v.get<std::int64_t>() != 0;
    return v.is_boolean();
  }
  if (like.is_number_float()) {
    if (v.is_number() || v.is_boolean()) v = v.is_boolean() ? (v.get<bool>() ? 1.0 : 0.0) : v.get<double>();
    return v.is_number();
  }
  if (like.is_number_integer()) {
    if (v.is_boolean()) v = v.get<bool>() ? 1 : 0;
    if (v.is_number_float() && v.get<double>() == static_cast<double>(static_cast<std::int64_t>(v.get<double>())))
      v = static_cast<std::int64_t>(v.get<double>());
    return v.is_number_integer();
  }
  if (like.is_string()) return v.is_string() || v.is_number_integer();  // a word, or its number
  if (like.is_array()) {
    if (v.is_number() && (like.empty() || is_number_list(like))) v = attributes::array({v});
    return v.is_array();
  }
  return v.is_object() || v.is_array();
}

std::string kind_of(const attributes& like) {
  return like.is_boolean()          ? "true or false"
         : like.is_number_float()   ? "a number"
         : like.is_number_integer() ? "a whole number"
         : like.is_string()         ? "a word"
         : like.is_array()          ? "a list"
                                    : "an object";
}

}  // namespace

const operator_row* find_operator(std::string_view name) {
  static const auto rows = [] {
    std::map<std::string_view, const operator_row*> out;
    for_each_operator([&](const operator_row& row) { out.emplace(row.name, &row); });
    return out;
  }();
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

std::vector<std::string_view> covered_operators() {
  std::vector<std::string_view> out;
  for_each_operator([&](const operator_row& row) { out.push_back(row.name); });
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<uncovered_operator> uncovered_operators() { return {std::begin(not_covered), std::end(not_covered)}; }

const attributes& default_attributes(const operator_row& row) {
  static std::mutex mutex;
  static std::map<const operator_row*, attributes> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(&row);
  if (fresh) at->second = parse_attributes(row.defaults);
  return at->second;
}

operation::operation(std::string name, const attributes& given) : name_(std::move(name)), row_(find_operator(name_)) {
  if (!given.is_object())
    raise(errc::invalid_argument, "attributes of '" + name_ + "' stand by name: found " + given.dump());
  if (!row_ && find_custom_op(name_)) {
    values_ = given;
    return;
  }
  if (!row_) {
    for (const uncovered_operator& u : not_covered)
      if (u.name == name_)
        raise(errc::unsupported, "operator '" + name_ + "' is not covered: " + std::string(u.reason));
    raise(errc::not_found, "no operator is called '" + name_ + "'; the nearest is '" + nearest_operator(name_) + "'");
  }
  take(given);
}

operation operation::of_row(const operator_row& row, const attributes& given) {
  operation out;
  out.name_ = row.name;
  out.row_ = &row;
  out.take(given);
  return out;
}

void operation::take(const attributes& given) {
  values_ = default_attributes(*row_);
  for (const auto& [attribute, v] : given.items()) {
    if (!values_.contains(attribute)) {
      std::string known;
      for (const auto& [own, ignored] : values_.items()) known.append(known.empty() ? "" : ", ").append(own);
      raise(errc::invalid_argument, "operator '" + name_ + "' has no attribute '" + attribute + "'; it has " +
                                        (known.empty() ? "none" : known));
    }
    attributes taken = v;
    if (!fit(taken, values_[attribute]))
      raise(errc::invalid_argument, "attribute '" + attribute + "' of '" + name_ + "': expected " +
                                        kind_of(values_[attribute]) + ", found " + v.dump());
    values_[attribute] = std::move(taken);
  }
}

operation operation::builtin(std::string name, attributes values) {
  operation out;
  out.name_ = std::move(name);
  out.values_ = std::move(values);
  return out;
}

}  // namespace kiln::migraphx
