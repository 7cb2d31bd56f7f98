#include "kiln/graph/custom_op.hpp"

#include "kiln/core/raw_dimension.hpp"
#include "kiln/interface/c/impl/handles.hpp"

struct kiln_op_call {
  const kiln::custom_attributes& attributes;
  std::vector<kiln::shape> inputs, outputs;
  std::span<const kiln::argument> in;
  std::span<kiln::argument> out;
  bool computes = false;
  std::string message;
};

using namespace kiln;
using namespace kiln::c;

namespace {

void call_back(kiln_op_callback function, void* user, kiln_op_call& call) {
  const kiln_status status = function(user, &call);
  if (status == KILN_OK) return;
  raise(code_of(status), !call.message.empty() ? call.message
                                               : std::string(call.computes ? "the computation" : "the shape rule") +
                                                     " returned status " + std::to_string(static_cast<int>(status)));
}

std::vector<shape> shapes_of(std::span<const argument> all) {
  std::vector<shape> out;
  for (const argument& a : all) out.push_back(a.get_shape());
  return out;
}

void put_operand(const std::vector<shape>& all, std::size_t index, kiln_dtype* type, std::size_t* rank,
                 kiln_dim* lens) {
  if (index >= all.size())
    raise(fault::of(errc::invalid_argument, "an index lies within the op's operands", all.size(), index));
  put_shape(all[index], type, rank, lens);
}

template <class Argument>
Argument& operand_with_data(const kiln_op_call& call, std::span<Argument> all, std::size_t i) {
  if (!call.computes) raise(errc::invalid_argument, "a shape rule has no elements to read");
  if (i >= all.size())
    raise(fault::of(errc::invalid_argument, "an index lies within the op's operands", all.size(), i));
  return all[i];
}

template <class Values> const Values& attribute_of(const kiln_op_call& call, const char* name) {
  const std::string_view wanted = not_null(name, "name");
  for (const custom_attribute& a : call.attributes)
    if (a.name == wanted) {
      if (const Values* values = std::get_if<Values>(&a.values)) return *values;
      constexpr const char* kinds[] = {"integers", "floats", "strings"};
      raise(errc::invalid_argument,
            "attribute '" + a.name + "' is read as what it is: it holds " + kinds[a.values.index()]);
    }
  raise(errc::not_found, "the node has the attribute that is read: found '" + std::string(wanted) + "'");
}

}  // namespace

kiln_status kiln_op_define(const char* domain, const char* op_type, kiln_op_callback shape, kiln_op_callback compute,
                           void* user, uint32_t flags) {
  return kiln_op_define_versioned(domain, op_type, nullptr, shape, compute, user, flags);
}

kiln_status kiln_op_define_versioned(const char* domain, const char* op_type, const char* version,
                                     kiln_op_callback shape, kiln_op_callback compute, void* user, uint32_t flags) {
  return guarded([&] {
    not_null(shape, "shape");
    not_null(compute, "compute");
    if (flags & ~KILN_OP_PURE) raise(fault::of(errc::invalid_argument, "flags of an op", "0 or KILN_OP_PURE", flags));
    custom_op op;
    op.domain = not_null(domain, "domain");
    op.type = not_null(op_type, "op_type");
    op.version = version ? version : "";
    op.pure = (flags & KILN_OP_PURE) != 0;
    op.shape_rule = [shape, user](const custom_attributes& attributes, std::span<const kiln::shape> in) {
      kiln_op_call call{attributes, {in.begin(), in.end()}, {}, {}, {}, false, {}};
      call_back(shape, user, call);
      return shapes(std::span<const kiln::shape>(call.outputs));
    };
    op.compute = [compute, user](const custom_attributes& attributes, std::span<const argument> in,
                                 std::span<argument> out) {
      kiln_op_call call{attributes, shapes_of(in), shapes_of(out), in, out, true, {}};
      call_back(compute, user, call);
    };
    define_custom_op(std::move(op));
  });
}

size_t kiln_op_input_count(const kiln_op_call* call) { return call ? call->inputs.size() : 0; }

size_t kiln_op_output_count(const kiln_op_call* call) { return call ? call->outputs.size() : 0; }

kiln_status kiln_op_input(const kiln_op_call* call, size_t index, kiln_dtype* type, size_t* rank, kiln_dim* lens) {
  return guarded([&] { put_operand(given(call, "call").inputs, index, type, rank, lens); });
}

kiln_status kiln_op_output(const kiln_op_call* call, size_t index, kiln_dtype* type, size_t* rank, kiln_dim* lens) {
  return guarded([&] { put_operand(given(call, "call").outputs, index, type, rank, lens); });
}

kiln_status kiln_op_set_output(kiln_op_call* call, kiln_dtype type, size_t rank, const kiln_dim* lens) {
  return guarded([&] {
    kiln_op_call& to = given(call, "call");
    if (to.computes) raise(errc::invalid_argument, "only a shape rule sets outputs");
    if (rank > max_rank) raise(fault::of(errc::limit, "rank of an output", max_rank, rank));
    shape s;
    s.type = checked_type(type);
    for (const kiln_dim d : given_array(lens, rank, "lens")) s.lens.push_back(checked_dimension(d));
    to.outputs.push_back(s);
  });
}

kiln_status kiln_op_input_data(const kiln_op_call* call, size_t index, const void** data) {
  return guarded([&] {
    const void*& out = given(data, "data");
    const kiln_op_call& of = given(call, "call");
    out = operand_with_data(of, of.in, index).data();
  });
}

kiln_status kiln_op_output_data(kiln_op_call* call, size_t index, void** data) {
  return guarded([&] {
    void*& out = given(data, "data");
    const kiln_op_call& of = given(call, "call");
    out = operand_with_data(of, of.out, index).data();
  });
}

kiln_status kiln_op_attribute_integers(const kiln_op_call* call, const char* name, size_t* count,
                                       const int64_t** values) {
  return guarded([&] {
    const int64_t*& out = given(values, "values");
    const auto& list = attribute_of<std::vector<std::int64_t>>(given(call, "call"), name);
    put(count, list.size());
    out = list.data();
  });
}

kiln_status kiln_op_attribute_reals(const kiln_op_call* call, const char* name, size_t* count, const float** values) {
  return guarded([&] {
    const float*& out = given(values, "values");
    const auto& list = attribute_of<std::vector<float>>(given(call, "call"), name);
    put(count, list.size());
    out = list.data();
  });
}

kiln_status kiln_op_attribute_text(const kiln_op_call* call, const char* name, const char** value) {
  return guarded([&] {
    const char*& out = given(value, "value");
    const auto& list = attribute_of<std::vector<std::string>>(given(call, "call"), name);
    if (list.size() != 1)
      raise(fault::of(errc::invalid_argument, "strings of an attribute that is read as one", 1, list.size()));
    out = list[0].c_str();
  });
}

kiln_status kiln_op_fail(kiln_op_call* call, kiln_status status, const char* message) {
  const kiln_status kept = guarded([&] {
    kiln_op_call& of = given(call, "call");
    if (status <= KILN_OK || status > KILN_INTERNAL)
      raise(errc::invalid_argument,
            "an op fails with a status other than KILN_OK: found " + std::to_string(static_cast<int>(status)));
    of.message = not_null(message, "message");
  });
  return kept == KILN_OK ? status : kept;
}
