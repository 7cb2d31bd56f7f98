#include "kiln/runtime/source_op.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <memory>
#include <sstream>

#include "kiln/runtime/impl/source_op/compiler.hpp"
#include "kiln/runtime/kept_files.hpp"

namespace kiln {
namespace {

template <class T>
using source_loop = void (*)(const T* const* in, const double* reals, const std::int64_t* integers, T* out,
                             std::int64_t n);

// f16 and bf16 are computed in pieces of so many floats.
constexpr std::int64_t piece = 1024;

bool is_integer(const custom_attribute& a) { return a.values.index() == 0; }

void check_name(const std::string& name, std::vector<std::string>& taken) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), in_word))
    raise(errc::invalid_argument, "operands and attributes have names of C++: found '" + name + "'");
  if (std::find(taken.begin(), taken.end(), name) != taken.end())
    raise(errc::invalid_argument, "operands and attributes have names of their own: found '" + name + "' twice");
  taken.push_back(name);
}

void check(const source_op& op) {
  std::vector<std::string> names{"T"};
  if (op.operands.empty()) raise(errc::invalid_argument, "an op has an operand: found none");
  for (const std::string& name : op.operands) check_name(name, names);
  for (const custom_attribute& a : op.attributes) {
    check_name(a.name, names);
    const auto count = std::visit([](const auto& list) { return list.size(); }, a.values);
    if (a.values.index() > 1 || count != 1)
      raise(errc::invalid_argument,
            "an attribute of an op from source is one number: found another default of '" + a.name + "'");
  }
  if (!op.types.mask || (op.types | dtypes::floats) != dtypes::floats)
    raise(errc::invalid_argument, "an op from source is for f64, f32, f16 or bf16: found another type, or none");
}

// What the compiler's messages call the text.
std::string label_of(std::string type) {
  std::replace_if(
      type.begin(), type.end(), [](char c) { return c == '"' || c == '\\' || c == '\n'; }, '_');
  return type;
}

// The text that is compiled. Compilers choose the loop for the machine that it runs on, by the clones.
std::string text_of(const source_op& op) {
  std::ostringstream out;
  out << "#include <algorithm>\n#include <cmath>\n#include <cstdint>\nnamespace {\n";
  for (const char* name :
       {"abs",      "acos",  "acosh",    "asin",  "asinh", "atan", "atan2", "atanh", "cbrt",   "ceil",  "clamp",
        "copysign", "cos",   "cosh",     "erf",   "erfc",  "exp",  "exp2",  "expm1", "fabs",   "floor", "fma",
        "fmod",     "hypot", "isfinite", "isinf", "isnan", "log",  "log10", "log1p", "log2",   "max",   "min",
        "pow",      "rint",  "round",    "sin",   "sinh",  "sqrt", "tan",   "tanh",  "tgamma", "trunc"})
    out << "using std::" << name << ";\n";
  out << "template <class T> inline T kiln_element(";
  const char* between = "";
  for (const std::string& name : op.operands) out << std::exchange(between, ", ") << "T " << name;
  for (const custom_attribute& a : op.attributes) out << (is_integer(a) ? ", std::int64_t " : ", T ") << a.name;
  out << ") {\n#line 1 \"" << label_of(op.type) << "\"\n" << op.source << "\n#line 1 \"kiln\"\n}\n}\n";
  out << "#if defined(__x86_64__) && defined(__linux__)\n"
         "#define KILN_CLONES __attribute__((target_clones(\"default\", \"avx2\", \"avx512f\")))\n"
         "#else\n#define KILN_CLONES\n#endif\n";
  for (const auto& [type, name] : {std::pair(dtype::f64, "double"), std::pair(dtype::f32, "float")}) {
    if (type == dtype::f64 ? !op.types.contains(type) : op.types == dtype_set{1u << static_cast<unsigned>(dtype::f64)})
      continue;
    out << "extern \"C\" __attribute__((visibility(\"default\"))) KILN_CLONES void kiln_" << name << "(const " << name
        << "* const* in, const double* reals, const std::int64_t* integers, " << name
        << "* __restrict out, std::int64_t n) {\n";
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      out << "  const " << name << "* const in" << i << " = in[" << i << "];\n";
    for (std::size_t i = 0; i < op.attributes.size(); ++i)
      out << "  const auto a" << i << " = "
          << (is_integer(op.attributes[i]) ? "integers[" : "static_cast<" + std::string(name) + ">(reals[") << i
          << (is_integer(op.attributes[i]) ? "];\n" : "]);\n");
    out << "  for (std::int64_t i = 0; i < n; ++i) out[i] = kiln_element<" << name << ">(";
    between = "";
    for (std::size_t i = 0; i < op.operands.size(); ++i) out << std::exchange(between, ", ") << "in" << i << "[i]";
    for (std::size_t i = 0; i < op.attributes.size(); ++i) out << ", a" << i;
    out << ");\n}\n";
  }
  return out.str();
}

// What tells the op from any other: attributes' defaults are no part of the text.
std::string version_of(const source_op& op, const std::string& compiler) {
  digest d;
  d.add(detail::code_digest(text_of(op), compiler));
  d.add(std::to_string(op.types.mask));
  for (const custom_attribute& a : op.attributes)
    std::visit(
        [&]<class T>(const std::vector<T>& value) {
          if constexpr (std::is_same_v<T, float>)
            d.add(std::to_string(std::bit_cast<std::uint32_t>(value.at(0))));
          else if constexpr (std::is_same_v<T, std::int64_t>)
            d.add(std::to_string(value.at(0)));
        },
        a.values);
  return d.str();
}

// An operand with the result's extents, row-major.
argument spread(const argument& a, const dims& to) {
  const shape& s = a.get_shape();
  if (s.lens == to) return a.contiguous();
  shape view{s.type, to};
  view.strides = dims(to.size(), dimension(0));
  const dims steps = s.element_strides();
  for (std::size_t i = 0; i < s.rank(); ++i) {
    const std::size_t at = to.size() - s.rank() + i;
    if (s.lens[i] == to[at])
      view.strides[at] = steps[i];
    else if (s.lens[i] != dimension(1))
      raise(fault::of(errc::shape_mismatch, "operands broadcast together", to, s.lens));
  }
  return argument(view, const_cast<std::byte*>(a.data())).contiguous();
}

class compiled_source {
 public:
  compiled_source(const source_op& op, const source_op_options& how) : op_(op) {
    const auto folder = user_cache_folder();
    const auto kept = !how.cache.empty() ? how.cache : folder.empty() ? folder : folder / "ops";
    void* const handle = detail::load_compiled(text_of(op), how.compiler, kept);
    f64_ = reinterpret_cast<source_loop<double>>(dlsym(handle, "kiln_double"));
    f32_ = reinterpret_cast<source_loop<float>>(dlsym(handle, "kiln_float"));
  }

  shapes shape_rule(const custom_attributes& given, std::span<const shape> in) const {
    values_of(given);
    if (in.size() != op_.operands.size())
      raise(fault::of(errc::invalid_argument, "number of operands", op_.operands.size(), in.size()));
    dims lens;
    for (const shape& s : in) {
      if (!op_.types.contains(s.type)) raise(fault::of(errc::unsupported, "dtype of an operand", types(), s.type));
      if (s.type != in[0].type) raise(fault::of(errc::shape_mismatch, "dtype of every operand", in[0].type, s.type));
      lens = broadcast(lens, s.lens).value();
    }
    return {shape{in[0].type, lens}};
  }

  void compute(const custom_attributes& given, std::span<const argument> in, argument& out) const {
    const numbers values = values_of(given);
    std::vector<argument> operands;
    for (const argument& a : in) operands.push_back(spread(a, out.get_shape().lens));
    switch (const dtype type = out.get_shape().type) {
      case dtype::f64: return run(f64_, values, operands, out);
      case dtype::f32: return run(f32_, values, operands, out);
      default: run_pieces(type, values, operands, out);
    }
  }

 private:
  // One of each for every attribute; the text reads the one that the attribute is.
  struct numbers {
    std::vector<double> reals;
    std::vector<std::int64_t> integers;
  };

  std::string types() const {
    std::string out;
    for (const dtype t : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16})
      if (op_.types.contains(t)) (out += out.empty() ? "" : " or ") += to_string(t);
    return out;
  }

  void put(numbers& to, const custom_attribute& a) const {
    std::string names;
    for (std::size_t i = 0; i < op_.attributes.size(); ++i) {
      (names += i ? ", " : "") += op_.attributes[i].name;
      if (op_.attributes[i].name != a.name) continue;
      const auto* const integers = std::get_if<std::vector<std::int64_t>>(&a.values);
      const auto* const reals = std::get_if<std::vector<float>>(&a.values);
      if (integers && integers->size() == 1) {
        to.integers[i] = (*integers)[0];
        to.reals[i] = static_cast<double>((*integers)[0]);
      } else if (reals && reals->size() == 1 && !is_integer(op_.attributes[i])) {
        to.reals[i] = (*reals)[0];
      } else {
        raise(errc::invalid_argument, "attribute " + a.name + " is " +
                                          (is_integer(op_.attributes[i]) ? "an integer" : "a number") +
                                          ": found another kind, or a list");
      }
      return;
    }
    raise(errc::not_found, "expected one of the attributes " + names + ", found '" + a.name + "'");
  }

  numbers values_of(const custom_attributes& given) const {
    numbers out;
    out.reals.resize(op_.attributes.size());
    out.integers.resize(op_.attributes.size());
    for (const custom_attribute& a : op_.attributes) put(out, a);
    for (const custom_attribute& a : given) put(out, a);
    return out;
  }

  template <class T>
  static void run(source_loop<T> loop, const numbers& values, const std::vector<argument>& in, argument& out) {
    std::vector<const T*> data;
    for (const argument& a : in) data.push_back(a.as<T>().data());
    loop(data.data(), values.reals.data(), values.integers.data(), out.as<T>().data(), out.elements());
  }

  void run_pieces(dtype type, const numbers& values, const std::vector<argument>& in, argument& out) const {
    std::vector<float> floats(static_cast<std::size_t>(piece) * (in.size() + 1));
    std::vector<const float*> data;
    for (std::size_t k = 0; k < in.size(); ++k) data.push_back(floats.data() + static_cast<std::size_t>(piece) * k);
    float* const made = floats.data() + static_cast<std::size_t>(piece) * in.size();
    for (std::int64_t at = 0; at < out.elements(); at += piece) {
      const std::int64_t n = std::min(piece, out.elements() - at);
      const auto from = static_cast<std::size_t>(at) * size_of(type);
      for (std::size_t k = 0; k < in.size(); ++k) decode(type, in[k].data() + from, const_cast<float*>(data[k]), n);
      f32_(data.data(), values.reals.data(), values.integers.data(), made, n);
      encode(type, made, out.data() + from, n);
    }
  }

  source_op op_;
  source_loop<double> f64_ = nullptr;
  source_loop<float> f32_ = nullptr;
};

}  // namespace

void define_source_op(const source_op& op, const source_op_options& how) {
  custom_op made;
  made.domain = op.domain;
  made.type = op.type;
  const std::string name = made.name();
  try {
    check(op);
    if (find_custom_op(name)) raise(errc::invalid_argument, "a custom op is defined once: found '" + name + "' again");
    const auto code = std::make_shared<const compiled_source>(op, how);
    made.version = op.version.empty() ? version_of(op, how.compiler) : op.version;
    made.shape_rule = [code](const custom_attributes& attributes, std::span<const shape> in) {
      return code->shape_rule(attributes, in);
    };
    made.compute = [code](const custom_attributes& attributes, std::span<const argument> in, std::span<argument> out) {
      code->compute(attributes, in, out[0]);
    };
  } catch (error& e) {
    throw e.at_op(name);
  }
  define_custom_op(std::move(made));
}

}  // namespace kiln
