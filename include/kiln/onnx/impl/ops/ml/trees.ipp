#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "kiln/onnx/impl/ops/ml/classifier.hpp"

// Tree ensembles of ai.onnx.ml: all samples descend all trees at once, with gathers and a comparison for each level.
namespace kiln::onnx {

namespace {

enum class branch : std::int64_t { leaf, leq, lt, gte, gt, eq, neq, member };

// The nodes of all trees as one list; a leaf is its own child.
struct forest {
  std::vector<std::int64_t> feature, yes, no, mode, missing;
  std::vector<double> split;
  std::vector<std::int64_t> roots;
  std::vector<std::vector<double>> members;  // by node: the set of a membership test
  struct weight {                            // of a leaf
    std::int64_t node, output;
    double value;
  };
  std::vector<weight> weights;

  std::size_t size() const { return mode.size(); }
  std::int64_t add(branch b, std::int64_t f, double s, bool missing_is_true) {
    const auto k = static_cast<std::int64_t>(size());
    feature.push_back(f);
    split.push_back(s);
    mode.push_back(static_cast<std::int64_t>(b));
    missing.push_back(missing_is_true);
    yes.push_back(k);
    no.push_back(k);
    members.emplace_back();
    return k;
  }
};

// The number of levels below the roots; `malformed` for a cycle.
std::int64_t depth_of(const node_context& c, const forest& f) {
  std::vector<std::int64_t> level = f.roots, next;
  std::vector<std::uint8_t> seen(f.size(), 0);
  std::int64_t depth = 0;
  for (std::int64_t r : level) seen[static_cast<std::size_t>(r)] = 1;
  while (true) {
    next.clear();
    for (const std::int64_t k : level) {
      const auto i = static_cast<std::size_t>(k);
      if (f.mode[i] == static_cast<std::int64_t>(branch::leaf)) continue;
      for (const std::int64_t child : {f.yes[i], f.no[i]}) {
        if (seen[static_cast<std::size_t>(child)]++) c.malformed("a node of a tree has one parent");
        next.push_back(child);
      }
    }
    if (next.empty()) return depth;
    if (++depth > 4096) raise(errc::limit, "a tree has at most 4096 levels");
    level.swap(next);
  }
}

value table(node_context& c, const std::vector<std::int64_t>& v) {
  return c.build.constant<std::int64_t>(dtype::i64, {v.size()}, v);
}
value table(node_context& c, dtype t, const std::vector<double>& v) {
  return c.build.constant<double>(t, {v.size()}, v);
}

// The leaf that each sample reaches in each tree: i64[samples, trees].
value reached(node_context& c, const forest& f, value x) {
  const dimension samples = x.dim(0);
  const auto trees = static_cast<std::int64_t>(f.roots.size());
  value at = table(c, f.roots).unsqueeze({0}).broadcast_to({samples, trees});
  const value features = table(c, f.feature), yes = table(c, f.yes), no = table(c, f.no),
              splits = table(c, x.type(), f.split), modes = table(c, f.mode), missing = table(c, f.missing);
  std::vector<bool> used(8, false);
  for (const std::int64_t m : f.mode) used[static_cast<std::size_t>(m)] = true;
  bool any_missing = std::any_of(f.missing.begin(), f.missing.end(), [](std::int64_t m) { return m != 0; });
  value member_lists;
  if (used[static_cast<std::size_t>(branch::member)]) {
    std::size_t longest = 1;
    for (const auto& m : f.members) longest = std::max(longest, m.size());
    std::vector<double> all;
    for (const auto& m : f.members)
      for (std::size_t k = 0; k < longest; ++k)
        all.push_back(k < m.size() ? m[k] : std::numeric_limits<double>::quiet_NaN());
    member_lists = c.build.constant<double>(x.type(), {f.size(), longest}, all);
  }
  const std::int64_t depth = depth_of(c, f);
  for (std::int64_t level = 0; level < depth; ++level) {
    const value seen = c.build.add(op::gather_elements{1}, x, features.gather(at, 0)), split = splits.gather(at, 0);
    const value mode = modes.gather(at, 0);
    value taken;
    const auto test = [&](branch b, auto make) {
      if (!used[static_cast<std::size_t>(b)]) return;
      const value own = make();
      const value is = mode.equal(c.build.scalar(dtype::i64, static_cast<std::int64_t>(b)));
      taken = taken ? is.where(own, taken) : own;
    };
    test(branch::leq, [&] { return not_greater(seen, split); });
    test(branch::lt, [&] { return seen < split; });
    test(branch::gte, [&] { return not_less(seen, split); });
    test(branch::gt, [&] { return seen > split; });
    test(branch::eq, [&] { return seen.equal(split); });
    test(branch::neq, [&] { return seen.equal(split).logical_not(); });
    test(branch::member,
         [&] { return (seen.unsqueeze({2}).equal(member_lists.gather(at, 0)) | op::reduce_any{{2}}).squeeze({2}); });
    if (any_missing)
      taken = either(taken, both(seen | op::is_nan{}, missing.gather(at, 0).equal(c.build.scalar(dtype::i64, 1))));
    at = taken.where(yes.gather(at, 0), no.gather(at, 0));
  }
  return at;
}

enum class aggregate { sum, average, min, max };

// The weights of the reached leaves, aggregated over the trees: [samples, outputs].
value scores(node_context& c, const forest& f, value x, std::int64_t outputs, aggregate how) {
  const value leaf = reached(c, f, x);
  const double none = how == aggregate::min   ? std::numeric_limits<double>::infinity()
                      : how == aggregate::max ? -std::numeric_limits<double>::infinity()
                                              : 0;
  std::vector<double> all(f.size() * static_cast<std::size_t>(outputs), none);
  for (const auto& w : f.weights) {
    if (w.output < 0 || w.output >= outputs || w.node < 0 || w.node >= static_cast<std::int64_t>(f.size()))
      c.malformed("a leaf's weight names an output");
    double& slot = all[static_cast<std::size_t>(w.node * outputs + w.output)];
    slot = how == aggregate::min   ? std::min(slot, w.value)
           : how == aggregate::max ? std::max(slot, w.value)
                                   : slot + w.value;
  }
  const value each =
      c.build.constant<double>(x.type(), {f.size(), outputs}, all).gather(leaf, 0);  // [samples, trees, outputs]
  value y;
  if (how == aggregate::min || how == aggregate::max) {
    y = (how == aggregate::min ? each.reduce_min({1}) : each.reduce_max({1})).squeeze({1});
    const value zero = c.build.scalar(x.type(), 0.0f);
    y = (y | op::is_inf{}).where(zero, y);
  } else {
    y = each.reduce_sum({1}).squeeze({1});
    if (how == aggregate::average) y = y / static_cast<float>(f.roots.size());
  }
  return y;
}

aggregate aggregate_named(const node_context& c, std::string_view name) {
  for (const auto& [text, how] : {std::pair<std::string_view, aggregate>{"SUM", aggregate::sum},
                                  {"AVERAGE", aggregate::average},
                                  {"MIN", aggregate::min},
                                  {"MAX", aggregate::max}})
    if (text == name) return how;
  c.malformed("aggregate_function is '" + std::string(name) + "'");
}

// A list attribute of floats, or the tensor attribute that may replace it.
std::vector<double> doubles(const node_context& c, std::string_view name) {
  if (const literal* l = c.tensor_attribute(std::string(name) + "_as_tensor")) {
    const auto v = l->to<double>();
    return {v.begin(), v.end()};
  }
  const auto v = c.reals(name);
  return {v.begin(), v.end()};
}

// Versions 1 and 3: a node has a tree and an id; attributes of the weights have the prefix.
forest read_forest(const node_context& c, std::string_view prefix, std::string_view outputs_name) {
  const auto trees = c.integers("nodes_treeids"), ids = c.integers("nodes_nodeids"),
             features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids"), missing = c.integers("nodes_missing_value_tracks_true");
  const auto modes = c.texts("nodes_modes");
  const std::vector<double> splits = doubles(c, "nodes_values");
  const std::size_t n = ids.size();
  for (const std::size_t other : {trees.size(), features.size(), yes.size(), no.size(), modes.size(), splits.size()})
    if (other != n) c.malformed("the node lists have one length");
  if (!missing.empty() && missing.size() != n) c.malformed("the node lists have one length");
  constexpr std::string_view names[] = {"LEAF",      "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT", "BRANCH_EQ",  "BRANCH_NEQ"};
  forest f;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbers;
  for (std::size_t k = 0; k < n; ++k) {
    const auto known = std::find(std::begin(names), std::end(names), modes[k]);
    if (known == std::end(names)) c.malformed("a node's mode is '" + modes[k] + "'");
    const auto b = static_cast<branch>(known - std::begin(names));
    if (b != branch::leaf && features[k] < 0) c.malformed("a node names a feature");
    const std::int64_t own =
        f.add(b, b == branch::leaf ? 0 : features[k], splits[k], !missing.empty() && missing[k] != 0);
    if (!numbers.emplace(std::pair{trees[k], ids[k]}, own).second) c.malformed("a node is defined twice");
    if (k == 0 || trees[k] != trees[k - 1]) f.roots.push_back(own);
  }
  const auto number = [&](std::int64_t tree, std::int64_t id) {
    const auto found = numbers.find({tree, id});
    if (found == numbers.end()) c.malformed("a tree has no node " + std::to_string(id));
    return found->second;
  };
  for (std::size_t k = 0; k < n; ++k)
    if (f.mode[k] != static_cast<std::int64_t>(branch::leaf)) {
      f.yes[k] = number(trees[k], yes[k]);
      f.no[k] = number(trees[k], no[k]);
    }
  const std::string p(prefix);
  const auto weight_trees = c.integers(p + "_treeids"), weight_ids = c.integers(p + "_nodeids"),
             outputs = c.integers(outputs_name);
  const std::vector<double> weights = doubles(c, p + "_weights");
  if (weight_trees.size() != weights.size() || weight_ids.size() != weights.size() || outputs.size() != weights.size())
    c.malformed("the weight lists have one length");
  for (std::size_t k = 0; k < weights.size(); ++k)
    f.weights.push_back({number(weight_trees[k], weight_ids[k]), outputs[k], weights[k]});
  return f;
}

value with_base(node_context& c, value y, const std::vector<double>& base) {
  return base.empty() ? y : y + c.build.constant<double>(y.type(), {base.size()}, base);
}
value features_of(const node_context& c) {
  const value x = c.in(0).type() == dtype::f64 ? c.in(0) : c.in(0).convert(dtype::f32);
  return x.rank() == 1 ? x.unsqueeze({0}) : x;
}

variables import_tree_regressor(node_context& c) {
  const forest f = read_forest(c, "target", "target_ids");
  const value y =
      scores(c, f, features_of(c), c.integer("n_targets", 1), aggregate_named(c, c.text("aggregate_function", "SUM")));
  return {
      transformed(c, with_base(c, y, doubles(c, "base_values")).convert(dtype::f32), c.text("post_transform", "NONE"))};
}

variables import_tree_classifier(node_context& c) {
  const forest f = read_forest(c, "class", "class_ids");
  std::int64_t outputs = 1;
  for (const auto& w : f.weights) outputs = std::max(outputs, w.output + 1);
  const class_labels labels = read_labels(c, "classlabels_int64s", "classlabels_strings");
  // of two classes, the weights may be of one alone: the other's score follows
  const bool single = labels.count == 2 && std::all_of(f.weights.begin(), f.weights.end(),
                                                       [&](const auto& w) { return w.output == f.weights[0].output; });
  value y = scores(c, f, features_of(c), single ? outputs : std::max(outputs, labels.count), aggregate::sum);
  const std::vector<double> base = doubles(c, "base_values");
  if (single) {
    y = y.slice({{1}, {outputs - 1}, {outputs}, {}});
    y = base.empty() ? y : y + static_cast<float>(base.back());
    const bool probable = std::all_of(f.weights.begin(), f.weights.end(), [](const auto& w) { return w.value >= 0; });
    return binary_classes(c, y.convert(dtype::f32), labels, c.text("post_transform", "NONE"), probable ? .5f : 0.0f,
                          probable ? pairing::complements : pairing::opposes);
  }
  return classes(c, with_base(c, y, base).convert(dtype::f32), labels, c.text("post_transform", "NONE"));
}

// Version 5: separate lists of roots, branches and leaves.
variables import_tree_ensemble(node_context& c) {
  const auto features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids"), yes_leaf = c.integers("nodes_trueleafs"),
             no_leaf = c.integers("nodes_falseleafs"), missing = c.integers("nodes_missing_value_tracks_true"),
             roots = c.integers("tree_roots"), targets = c.integers("leaf_targetids");
  const literal *modes = c.tensor_attribute("nodes_modes"), *splits = c.tensor_attribute("nodes_splits"),
                *weights = c.tensor_attribute("leaf_weights"), *sets = c.tensor_attribute("membership_values");
  if (!modes || !splits || !weights) c.malformed("nodes_modes, nodes_splits and leaf_weights are tensors");
  const std::size_t n = features.size();
  const auto mode = modes->to<std::int64_t>();
  const auto split = splits->to<double>(), weight = weights->to<double>();
  const auto members = sets ? sets->to<double>() : small_vector<double>();
  for (const std::size_t other : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), mode.size(), split.size()})
    if (other != n) c.malformed("the node lists have one length");
  if (targets.size() != weight.size()) c.malformed("the leaf lists have one length");
  constexpr branch kinds[] = {branch::leq, branch::lt,  branch::gte,   branch::gt,
                              branch::eq,  branch::neq, branch::member};
  forest f;
  std::size_t member = 0;
  for (std::size_t k = 0; k < n; ++k) {
    if (mode[k] < 0 || mode[k] > 6) c.malformed("a node's mode is 0 to 6");
    const std::int64_t own = f.add(kinds[mode[k]], features[k], split[k], !missing.empty() && missing[k] != 0);
    if (kinds[mode[k]] != branch::member) continue;
    // NaN ends each set
    for (; member < members.size() && members[member] == members[member]; ++member)
      f.members[static_cast<std::size_t>(own)].push_back(members[member]);
    ++member;
  }
  for (std::size_t k = 0; k < weight.size(); ++k) {
    const std::int64_t own = f.add(branch::leaf, 0, 0, false);
    f.weights.push_back({own, targets[k], weight[k]});
  }
  // a leaf may be the child of several branches: each gets a copy
  const auto child = [&](std::int64_t k, bool is_leaf) {
    const auto limit = static_cast<std::int64_t>(is_leaf ? weight.size() : n);
    if (k < 0 || k >= limit) c.malformed("a branch names a node or a leaf");
    if (!is_leaf) return k;
    const std::int64_t own = f.add(branch::leaf, 0, 0, false);
    f.weights.push_back({own, targets[static_cast<std::size_t>(k)], weight[static_cast<std::size_t>(k)]});
    return own;
  };
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t to_yes = child(yes[k], yes_leaf[k] != 0), to_no = child(no[k], no_leaf[k] != 0);
    f.yes[k] = to_yes;
    f.no[k] = to_no;
  }
  for (const std::int64_t r : roots) {
    if (r < 0 || r >= static_cast<std::int64_t>(n)) c.malformed("a root is a node");
    const auto i = static_cast<std::size_t>(r);
    // a tree that is one leaf has it as both children of its root
    const bool bare = yes_leaf[i] && no_leaf[i] && yes[i] == no[i];
    f.roots.push_back(bare ? f.yes[i] : r);
  }
  constexpr aggregate hows[] = {aggregate::average, aggregate::sum, aggregate::min, aggregate::max};
  const std::int64_t how = c.integer("aggregate_function", 1), after = c.integer("post_transform", 0);
  constexpr std::string_view afters[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (how < 0 || how > 3 || after < 0 || after > 4) c.malformed("aggregate_function is 0 to 3, post_transform 0 to 4");
  const value y = scores(c, f, features_of(c), c.integer("n_targets", 1), hows[how]);
  return {transformed(c, y, afters[after]).convert(c.in(0).type())};
}

}  // namespace

std::span<const op_importer> tree_importers() {
  static constexpr op_importer table[] = {
      {ai_onnx_ml, "TreeEnsemble", 5, import_tree_ensemble},
      {ai_onnx_ml, "TreeEnsembleClassifier", 1, import_tree_classifier},
      {ai_onnx_ml, "TreeEnsembleRegressor", 1, import_tree_regressor},
  };
  return table;
}

}  // namespace kiln::onnx
