#include <map>

#include "kiln/core/error.hpp"
#include "kiln/tensorflow/impl/file/control_flow.hpp"

// A loop of TensorFlow 1 is a frame: each value enters it (Enter), is joined with what the last iteration gave (Merge,
// NextIteration), and goes into the body or out (Switch by LoopCond, Exit). Values that stay only enter.
namespace kiln::tensorflow {

onnx::attribute function_attribute(std::string name, std::string function) {
  onnx::attribute a;
  a.name = std::move(name);
  a.kind = onnx::attribute_kind::other;
  a.text = std::move(function);
  return a;
}

namespace {

bool is(const onnx::node* n, std::string_view op_type) {
  return n && (n->op_type == op_type || n->op_type == "Ref" + std::string(op_type));
}
[[noreturn]] void unsupported(const onnx::node& n, const std::string& why) {
  raise(errc::unsupported, described(n) + ": " + why);
}

struct frame {
  std::vector<std::string> merges, enters, nexts;  ///< of each value
  std::vector<std::string> fixed;                  ///< Enter nodes of values that stay
  enum class progress : std::uint8_t { waits, begun, done } state = progress::waits;
};

class loop_raiser {
 public:
  loop_raiser(node_table& table, graph_def& graph) : table_(table), graph_(graph) { find_frames(); }

  void run() {
    for (auto& [name, f] : frames_) raise_frame(name, f);
    if (frames_.empty()) return;
    table_.remove(gone_);
  }

 private:
  void find_frames() {
    for (const onnx::node& n : table_.nodes())
      if (is(&n, "Merge") && n.inputs.size() >= 2)
        for (const std::size_t next : {0u, 1u})
          if (is(table_.giver(n.inputs[next]), "NextIteration") && !is_order(n.inputs[next])) {
            const onnx::node* const enter = table_.giver(n.inputs[1 - next]);
            if (!is(enter, "Enter")) unsupported(n, "joins an iteration with a value that does not enter the loop");
            frame& f = frames_[frame_of(*enter)];
            f.merges.push_back(n.name);
            frame_of_merge_.emplace(n.name, frame_of(*enter));
            f.enters.push_back(enter->name);
            f.nexts.push_back(n.inputs[next]);
            varying_.insert(enter->name);
            break;
          }
    for (const onnx::node& n : table_.nodes())
      if (is(&n, "Enter") && !varying_.contains(n.name)) frames_[frame_of(n)].fixed.push_back(n.name);
  }
  static std::string frame_of(const onnx::node& enter) {
    const onnx::attribute* const a = find_attribute(enter, "frame_name");
    if (!a || a->text.empty() || enter.inputs.empty()) unsupported(enter, "attribute 'frame_name' is missing");
    return a->text;
  }

  // Loops in the body come first: what leaves them is what their While nodes give.
  void raise_frame(const std::string& name, frame& f) {
    if (f.state == frame::progress::done) return;
    if (f.state == frame::progress::begun) raise(errc::unsupported, "loop '" + name + "' is in itself");
    f.state = frame::progress::begun;
    const nesting depth(nested_, "loop '" + name + "'", "loops");
    if (f.merges.empty()) raise(errc::unsupported, "loop '" + name + "' has no value that changes");
    std::unordered_map<std::string, std::size_t> by_merge;
    for (std::size_t i = 0; i < f.merges.size(); ++i) by_merge.emplace(f.merges[i], i);

    argument_names of_cond, of_body;
    std::vector<std::string> inputs, arguments;
    const auto add_argument = [&](const std::string& enter) {
      inputs.push_back(table_.giver(enter)->inputs[0]);
      arguments.push_back("loop." + std::to_string(arguments.size()));
    };
    for (std::size_t i = 0; i < f.merges.size(); ++i) {
      add_argument(f.enters[i]);
      of_cond.emplace(f.merges[i], arguments.back());
      of_body.emplace(f.merges[i], arguments.back());
    }
    for (const std::string& enter : f.fixed) {
      add_argument(enter);
      of_cond.emplace(enter, arguments.back());
      of_body.emplace(enter, arguments.back());
    }
    std::string condition;
    table_.spend(table_.nodes().size());
    for (const onnx::node& n : table_.nodes()) {
      if (!is(&n, "Switch") || n.inputs.size() < 2) continue;
      const auto merge = by_merge.find(std::string(parts_of(n.inputs[0]).node));
      const onnx::node* const loop_cond = table_.giver(n.inputs[1]);
      if (merge == by_merge.end() || !is(loop_cond, "LoopCond") || loop_cond->inputs.empty()) continue;
      of_body.emplace(output_name(n.name, 1), arguments[merge->second]);
      switches_.emplace(n.name, std::pair(name, merge->second));
      gone_.insert(n.name);
      gone_.insert(loop_cond->name);
      condition = loop_cond->inputs[0];
    }
    if (condition.empty()) raise(errc::unsupported, "loop '" + name + "' has no LoopCond");

    const std::string own = "#" + std::to_string(graph_.functions.size());
    function_def cond = function_of(name + "/cond" + own, arguments),
                 body = function_of(name + "/body" + own, arguments);
    const auto before = [&](const std::string& node) { raise_inner(node, name); };
    std::unordered_set<std::string> in_cond, in_body;
    add_needed(cond, table_, condition, of_cond, in_cond, before);
    for (const std::string& next : f.nexts) {
      const onnx::node* const n = table_.giver(next);
      gone_.insert(n->name);
      if (n->inputs.empty()) unsupported(*n, "it has no input");
      add_needed(body, table_, std::string(n->inputs[0]), of_body, in_body, before);
    }
    for (std::size_t i = f.merges.size(); i < arguments.size(); ++i) body.outputs.push_back(arguments[i]);
    finish(body, cond);
    for (const auto* list : {&f.merges, &f.enters, &f.fixed}) gone_.insert(list->begin(), list->end());
    for (const auto* nodes : {&cond.nodes, &body.nodes})
      for (const onnx::node& n : *nodes)
        if (n.op_type != "Const") gone_.insert(n.name);
    add_loop(name, std::move(inputs), std::move(cond), std::move(body));
    f.state = frame::progress::done;
  }
  void add_loop(const std::string& name, std::vector<std::string> inputs, function_def cond, function_def body) {
    onnx::node loop;
    loop.name = name + "/While";
    loop.domain = table_.nodes()[0].domain;
    loop.op_type = "While";
    loop.inputs = std::move(inputs);
    loop.attributes = {function_attribute("cond", cond.name), function_attribute("body", body.name)};
    const std::string own = loop.name;
    graph_.functions.push_back(std::move(cond));
    graph_.functions.push_back(std::move(body));
    for (onnx::node& n : table_.nodes()) {
      if (!is(&n, "Exit") || n.inputs.empty()) continue;
      const auto left = switches_.find(std::string(parts_of(n.inputs[0]).node));
      if (left == switches_.end() || left->second.first != name) continue;
      n.op_type = "Identity";
      n.inputs = {output_name(own, left->second.second)};
    }
    table_.add(std::move(loop));
  }
  static function_def function_of(std::string name, const std::vector<std::string>& arguments) {
    function_def f;
    f.name = std::move(name);
    f.inputs = arguments;
    return f;
  }
  static void finish(function_def& body, function_def& cond) {
    for (function_def* f : {&body, &cond})
      for (std::size_t k = 0; k < f->outputs.size(); ++k) f->output_names.push_back("out." + std::to_string(k));
  }

  void raise_inner(const std::string& node, const std::string& own) {
    const onnx::node* const n = table_.giver(node);
    if (is(n, "Enter")) {
      const std::string other = frame_of(*n);
      unsupported(*n, "a value of loop '" + other + "' is read in loop '" + own + "'");
    }
    if (!is(n, "Exit") || n->inputs.empty()) return;
    const onnx::node* const from = table_.giver(n->inputs[0]);
    const onnx::node* const merge = from && !from->inputs.empty() ? table_.giver(from->inputs[0]) : nullptr;
    if (!is(from, "Switch") || !is(merge, "Merge")) unsupported(*n, "leaves no loop");
    const auto own_frame = frame_of_merge_.find(merge->name);
    if (own_frame == frame_of_merge_.end()) unsupported(*n, "leaves no loop");
    raise_frame(own_frame->second, frames_[own_frame->second]);
  }

  node_table& table_;
  graph_def& graph_;
  std::map<std::string, frame> frames_;
  std::unordered_map<std::string, std::string> frame_of_merge_;
  std::unordered_set<std::string> varying_;
  std::unordered_map<std::string, std::pair<std::string, std::size_t>> switches_;  // their loop and value
  std::unordered_set<std::string> gone_;
  std::size_t nested_ = 0;
};

}  // namespace

void raise_loops(node_table& table, graph_def& graph) { loop_raiser(table, graph).run(); }

}  // namespace kiln::tensorflow
