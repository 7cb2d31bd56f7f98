#include "kiln/onnx/add_operator.hpp"

#include "kiln/onnx/impl/import/op_table.hpp"

namespace kiln::onnx {

namespace {

// What an operator by itself may ask of an importer: symbols alone.
class lone_operator final : public body_importer {
 public:
  explicit lone_operator(builder& to) : to_(to) {}

  dimension fresh_symbol(std::string_view what, std::int64_t least) override {
    constexpr std::int64_t most = std::int64_t{1} << 46;
    return dimension::symbol(std::string(to_.label.view()) + "." + std::string(what) + "." + std::to_string(symbols_++),
                             least, least < 0 ? -least : most);
  }
  variables import_body(const graph&, const variables&) override { refuse(); }
  variable named(std::string_view) override { refuse(); }
  body_module build_module(const graph&, std::span<const body_parameter>, named_variables) override { refuse(); }
  std::optional<body_module> try_module(const graph&, std::span<const body_parameter>, named_variables,
                                        import_faults&) override {
    refuse();
  }
  void report(const import_faults&) override { refuse(); }
  module_ref add_module(module_graph) override { refuse(); }
  body_mark mark() const override { refuse(); }
  void return_to(body_mark) override { refuse(); }
  loop_memory& remembered_loop() override { refuse(); }

 private:
  [[noreturn]] static void refuse() { raise(errc::unsupported, "an operator with bodies is no operator by itself"); }
  builder& to_;
  std::size_t symbols_ = 0;
};

}  // namespace

small_vector<value> add_operator(builder& to, const node& n, std::int64_t version,
                                 const small_vector<value>& operands) {
  const op_importer* const found = find_op_importer(n.domain, n.op_type, version);
  if (!found || !found->function)
    raise(errc::unsupported, "no importer serves operator '" + n.op_type + "' of version " + std::to_string(version));
  lone_operator alone(to);
  variables in;
  for (const value& v : operands) in.push_back(v ? variable(v) : variable());
  node_context c{to, n, version, std::move(in), &alone};
  small_vector<value> out;
  for (const variable& v : found->function(c)) {
    if (v && (v.is_sequence || v.is_empty || !v.possible_types.empty()))
      raise(errc::unsupported, "a result of operator '" + n.op_type + "' is no tensor");
    out.push_back(v.tensor);
  }
  return out;
}

}  // namespace kiln::onnx
