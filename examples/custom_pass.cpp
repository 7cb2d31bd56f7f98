// A user's own pass: a rewrite is a value, and the same one optimizes a program at run time and inside the compiler.
#include <fmt/format.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/matcher.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

// [rewrite]
// sqrt(x * x) is |x|.
constexpr kiln::rewrite magnitude{
    "magnitude",
    kiln::match::op<kiln::op::sqrt>(
        kiln::match::op<kiln::op::mul>(kiln::match::capture<0>{}, kiln::match::capture<0>{})),
    [](auto& graph, const kiln::captures& found, kiln::value_id) { return graph.add(kiln::op::abs{}, {found[0]}); }};
// [/rewrite]

// [pass]
// A pass edits a program and says what it did.
template <class Program> constexpr kiln::pass_note use_magnitude(Program& p) {
  kiln::pass_note note("use_magnitude");
  note.count(kiln::apply_rewrites(p.main(), magnitude));
  return note;
}
// [/pass]

template <class Builder> constexpr auto make_network(Builder& b) {
  const auto x = b.input("x", kiln::dtype::f32, {8});
  b.output((x * x).sqrt() + x, "y");
  return b.finish();
}

// [static]
static_assert([] {
  kiln::static_builder<> b;
  auto net = make_network(b);
  const bool applied = use_magnitude(net).counts.total() == 1;
  return applied && net.main().size() == 3;  // x, abs, add
}());
// [/static]

}  // namespace

int main() {
  // [options]
  kiln::builder b;
  kiln::compile_options options;
  options.passes.extra.push_back({"use_magnitude", &use_magnitude<kiln::program>});
  const kiln::executable compiled = kiln::compile(make_network(b), kiln::eigen_target(), options);
  // [/options]

  std::uint32_t applied = 0;
  for (const kiln::pass_note& note : compiled.report().passes)
    if (note.pass == "use_magnitude") applied += note.counts.total();
  fmt::print("{}applied {} time(s)\n", kiln::print(compiled.optimized()).view(), applied);

  const std::vector<float> x = {-3, -1, -0.5f, 0, 0.25f, 1, 2, 4};
  const kiln::argument y = compiled.run({{"x", kiln::argument::of<float>({8}, x)}})[0];
  bool right = true;
  for (std::size_t i = 0; i < x.size(); ++i) right = right && y.as<float>()[i] == (x[i] < 0 ? 0 : 2 * x[i]);
  return right && applied == 1 ? 0 : 1;
}
