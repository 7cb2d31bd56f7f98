#include "kiln/onnx/fingerprint.hpp"

#include <algorithm>

#include "kiln/runtime/content_hash.hpp"

namespace kiln::onnx {

namespace {

template <class T> void add_number(content_hash& to, T value) {
  to.add({reinterpret_cast<const char*>(&value), sizeof value});
}

template <class T> void add_numbers(content_hash& to, const std::vector<T>& values) {
  to.add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

void add_texts(content_hash& to, const std::vector<std::string>& texts) {
  add_number(to, texts.size());
  for (const std::string& t : texts) to.add(t);
}

class model_hash {
 public:
  explicit model_hash(thread_pool& pool) : pool_(pool) {}

  void add(const graph& g) {
    for (const auto* list : {&g.inputs, &g.outputs}) {
      add_number(graph_, list->size());
      for (const value_info& v : *list) add(v);
    }
    add_number(graph_, g.initializers.size());
    // their order says nothing, and ONNX Runtime's is another each time
    std::vector<const tensor*> by_name;
    for (const tensor& t : g.initializers) by_name.push_back(&t);
    std::sort(by_name.begin(), by_name.end(), [](const tensor* a, const tensor* b) { return a->name < b->name; });
    for (const tensor* t : by_name) add(*t);
    add(g.nodes);
  }
  void add(const function& f) {
    graph_.add(f.domain), graph_.add(f.name), graph_.add(f.overload);
    add_texts(graph_, f.inputs), add_texts(graph_, f.outputs), add_texts(graph_, f.attributes);
    for (const attribute& a : f.defaults) add(a);
    add(f.nodes);
    add_versions(f.versions);
  }
  fingerprint take(std::string operator_sets) const { return {graph_.str(), weights_.str(), std::move(operator_sets)}; }

 private:
  void add_versions(const opsets& versions) {
    for (const auto& [domain, version] : versions) graph_.add(domain), add_number(graph_, version);
  }
  void add(const std::vector<node>& nodes) {
    add_number(graph_, nodes.size());
    for (const node& n : nodes) {
      graph_.add(n.domain), graph_.add(n.op_type), graph_.add(n.overload);
      add_texts(graph_, n.inputs), add_texts(graph_, n.outputs);
      add_number(graph_, n.attributes.size());
      for (const attribute& a : n.attributes) add(a);
    }
  }
  void add(const value_info& v) {
    graph_.add(v.name);
    add_number(graph_, v.kind), add_number(graph_, v.holds_sequence), add_number(graph_, v.holds_map);
    add_number(graph_, v.type), add_number(graph_, v.has_rank);
    add_number(graph_, v.dims.size());
    for (const declared_dim& d : v.dims) add_number(graph_, d.value), graph_.add(d.name);
  }
  void add(const attribute& a) {
    graph_.add(a.name), graph_.add(a.reference);
    add_number(graph_, a.kind), add_number(graph_, a.real), add_number(graph_, a.integer);
    graph_.add(a.text);
    add_numbers(graph_, a.reals), add_numbers(graph_, a.integers);
    add_texts(graph_, a.texts);
    for (const tensor& t : a.tensors) add(t);
    for (const graph& g : a.graphs) add(g);
  }
  void add(const tensor& t) {
    graph_.add(t.name), graph_.add(t.fault);
    add_number(graph_, t.type);
    const shape& s = t.value.get_shape();
    add_number(graph_, s.type);
    add_number(graph_, s.lens.size());
    for (const dimension& d : s.lens) add_number(graph_, d.value());
    weights_.add({t.value.data().data(), t.value.data().size()}, pool_);
  }

  thread_pool& pool_;
  content_hash graph_, weights_;
};

}  // namespace

fingerprint fingerprint_of(const model& m, thread_pool& pool) {
  model_hash hash(pool);
  hash.add(m.main);
  for (const function& f : m.functions) hash.add(f);
  std::string operator_sets;
  opsets versions = m.versions;
  std::sort(versions.begin(), versions.end());
  for (const auto& [domain, version] : versions)
    operator_sets +=
        (operator_sets.empty() ? "" : ", ") + (domain.empty() ? "ai.onnx" : domain) + " " + std::to_string(version);
  return hash.take(std::move(operator_sets));
}

}  // namespace kiln::onnx
