#include "inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/core/object.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "npy.hpp"

namespace kiln::driver {

namespace {

// Steele, Lea and Flood's splitmix64 (OOPSLA 2014): any seed gives a good stream.
class generator {
 public:
  /// `bits` is the significand's width in the type the numbers are stored in: they are exact there.
  generator(std::uint64_t seed, int bits) : state_(seed), bits_(bits), step_(2.0 / static_cast<double>(1u << bits)) {}
  double uniform() {  // in [-1, 1)
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<double>(z >> (64 - bits_)) * step_ - 1;
  }

 private:
  std::uint64_t state_;
  int bits_;
  double step_;
};

// Most elements that a filled input may have: beyond it a size is a slip of the hand, not a wish.
constexpr double fill_limit = 1e10;

const port* find(std::span<const port> ports, std::string_view name) {
  for (const port& p : ports)
    if (p.name == name) return &p;
  return nullptr;
}

void fit(const port& p, const argument& a, bindings& symbols) {
  const shape& got = a.get_shape();
  const auto refuse = [&] {
    raise(errc::shape_mismatch,
          fmt::format("input '{}' takes {}, but was given {}", p.name, to_string(p.type), to_string(got)));
  };
  if (got.type != p.type.type || got.rank() != p.type.rank()) refuse();
  for (std::size_t i = 0; i < got.rank(); ++i) {
    const dimension want = p.type.lens[i];
    const std::int64_t n = got.lens[i].value();
    if (is_symbol(want)) {
      const auto before = symbols.find(want);
      if (before && *before != n)
        raise(errc::shape_mismatch,
              fmt::format("dim '{}' is {} elsewhere, but {} in input '{}'", symbol_name(want), *before, n, p.name));
      symbols.bind(want, n);
    } else if (want.is_constant() && want != dimension(n)) {
      refuse();
    }
  }
}

void bind_rest(std::span<const port> inputs, const model_options& o, bindings& symbols) {
  small_vector<dimension> all;
  for (const port& p : inputs)
    for (dimension d : p.type.lens) collect_symbols(d, all);
  for (dimension s : all) {
    if (symbols.find(s)) continue;
    std::int64_t n = std::max<std::int64_t>(1, s.min());
    for (const auto& [name, value] : o.dims)
      if (name == symbol_name(s)) n = value;
    symbols.bind(s, n);
  }
}

}  // namespace

std::string names_of(std::span<const port> ports) {
  std::string out;
  for (const port& p : ports) out += (out.empty() ? "" : ", ") + p.name;
  return out.empty() ? "none" : out;
}

namespace {

// What an input's file holds, which the model, or the saved program, says.
struct declared_input {
  std::string name;
  std::optional<dtype> type;     // of a tensor's elements
  dtype container = dtype::f32;  // what holds tensors: see onnx::read_value
};

std::vector<declared_input> declared_inputs(const model_options& o) {
  std::vector<declared_input> out;
  if (is_saved_program(o.model))
    for (const port& p : inspect(o.model).inputs) out.push_back({p.name, p.type.type, p.type.type});
  else
    for (const onnx::value_info& v : tensorflow::any_model_inputs(o.model, {.signature = o.signature, .tag = o.tag}))
      out.push_back({v.name, onnx::to_dtype(v.type), container_of(v)});
  return out;
}

}  // namespace

named_arguments read_inputs(const model_options& o) {
  std::vector<declared_input> declared;
  const auto declaration = [&](const std::string& name) -> declared_input {
    if (declared.empty()) declared = declared_inputs(o);
    for (const declared_input& v : declared)
      if (v.name == name) return v;
    return {};
  };
  named_arguments out;
  for (const auto& [name, path] : o.inputs) {
    argument a;
    if (path.ends_with(".npy"))
      a = read_npy(path, declaration(name).type);
    else if (path.ends_with(".pb"))
      a = onnx::read_value(path, declaration(name).container).value;
    else
      raise(errc::invalid_argument, fmt::format("--input {}={}: an input file ends in .pb or .npy", name, path));
    if (!out.emplace(name, std::move(a)).second)
      raise(errc::invalid_argument, fmt::format("input '{}' was given twice", name));
  }
  return out;
}

argument filled(const shape& s, std::uint64_t seed) {
  double elements = 1;
  for (dimension d : s.lens) elements *= static_cast<double>(d.value());
  if (elements > fill_limit)
    raise(errc::limit, fmt::format("a filled input of {} has more than {:.0e} elements", to_string(s), fill_limit));
  argument out(s);
  if (is_object(s.type)) return out;  // empty strings, sequences, optionals, maps, zeros
  const std::int64_t n = out.elements();
  if (is_float(s.type)) {
    generator random(seed, s.type == dtype::f16 ? 11 : s.type == dtype::bf16 ? 8 : is_narrow(s.type) ? 3 : 24);
    double block[1024];
    for (std::int64_t i = 0; i < n; i += 1024) {
      const std::int64_t count = std::min<std::int64_t>(1024, n - i);
      for (std::int64_t k = 0; k < count; ++k) block[k] = random.uniform();
      encode(s.type, block, out.data() + static_cast<std::size_t>(i) * size_of(s.type), count);
    }
  } else {
    const std::int64_t one = 1;
    for (std::int64_t i = 0; i < n; ++i)
      encode(s.type, &one, out.data() + static_cast<std::size_t>(i) * size_of(s.type), 1);
  }
  return out;
}

prepared_inputs prepare_inputs(std::span<const port> inputs, const named_arguments& given, const model_options& o) {
  prepared_inputs out;
  for (const auto& [name, value] : given) {
    const port* p = find(inputs, name);
    if (!p) raise(errc::not_found, fmt::format("no input '{}'; inputs: {}", name, names_of(inputs)));
    fit(*p, value, out.symbols);
  }
  bind_rest(inputs, o, out.symbols);
  std::uint64_t seed = o.seed;
  for (const port& p : inputs) {
    seed += 0x51ed2701u;
    if (const auto it = given.find(p.name); it != given.end()) {
      for (std::size_t i = 0; i < p.type.rank(); ++i)  // extents that are expressions are known only now
        if (out.symbols.evaluate(p.type.lens[i]) != it->second.get_shape().lens[i].value())
          raise(errc::shape_mismatch, fmt::format("input '{}' takes {}, but was given {}", p.name, to_string(p.type),
                                                  to_string(it->second.get_shape())));
      out.arguments.push_back(it->second);
      continue;
    }
    shape s(p.type.type, {});
    for (dimension d : p.type.lens) s.lens.push_back(out.symbols.evaluate(d));
    out.arguments.push_back(filled(s, seed));
  }
  return out;
}

namespace {
std::vector<shape> shapes_of(std::span<const argument> all) {
  std::vector<shape> out;
  for (const argument& a : all) out.push_back(a.get_shape());
  return out;
}
}  // namespace

std::vector<shape> prepared_inputs::shapes() const { return shapes_of(arguments); }

std::vector<argument> make_outputs(const executable& exe, std::vector<argument>& inputs, const model_options& o) {
  std::vector<argument> outputs = exe.make_outputs(shapes_of(inputs));
  for (const auto& [output, input] : o.compiling.aliases) {
    const auto is_output = [&, &name = output](const port& p) { return p.name == name; };
    const auto k = std::find_if(exe.outputs().begin(), exe.outputs().end(), is_output) - exe.outputs().begin();
    argument& past = inputs[exe.input_index(input)];
    const argument there = leading_part(outputs[static_cast<std::size_t>(k)], past.get_shape().lens);
    const auto as_tensor = [](const argument& a) {
      return tensor{const_cast<std::byte*>(a.data()), a.get_shape().type, to_ints(a.get_shape().lens),
                    to_ints(a.get_shape().element_strides())};
    };
    copy_tensor(as_tensor(past), as_tensor(there), nullptr);
    past = there;
  }
  return outputs;
}

std::vector<argument> run_once(const executable& exe, std::vector<argument> inputs, const model_options& o) {
  std::vector<argument> outputs = make_outputs(exe, inputs, o);
  workspace w = exe.make_workspace();
  exe.run(w, inputs, outputs);
  return outputs;
}

}  // namespace kiln::driver
