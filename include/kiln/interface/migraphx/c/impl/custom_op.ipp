#include <array>

#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

namespace {

// Calls a function of the caller's with room for its message.
template <class Call> void call_back(const std::string& op, const char* what, Call&& call) {
  std::array<char, 256> message{};
  if (call(message.data(), message.size()) == migraphx_status_success) return;
  message.back() = '\0';
  raise(errc::unsupported, "custom op '" + op + "': " + what + " failed" +
                               (message[0] ? ": " + std::string(message.data()) : std::string()));
}

custom_op finished(const foreign_op& from) {
  custom_op out;
  out.name = from.name;
  const auto op = std::make_shared<const foreign_op>(from);
  void* const self = op->object.get();
  if (op->compute_shape)
    out.compute_shape = [op, self](const std::vector<shape>& inputs) {
      std::vector<shape> in = inputs;
      shape made;
      call_back(op->name, "compute_shape", [&](char* message, std::size_t size) {
        return op->compute_shape(handle_of<migraphx_shape>(&made), self, message, size,
                                 handle_of<migraphx_shapes>(&in));
      });
      return made;
    };
  if (op->compute)
    out.compute = [op, self](const shape& output, const std::vector<argument>& inputs) {
      std::vector<argument> in = inputs;
      shape wanted = output;
      argument made;
      context host;
      call_back(op->name, "compute", [&](char* message, std::size_t size) {
        return op->compute(handle_of<migraphx_argument>(&made), self, message, size, handle_of<migraphx_context>(&host),
                           handle_of<migraphx_shape>(&wanted), handle_of<migraphx_arguments>(&in));
      });
      return made;
    };
  if (op->output_alias)
    out.output_alias = [op, self](const std::vector<shape>& inputs) {
      std::vector<shape> in = inputs;
      std::vector<std::size_t> all(std::max<std::size_t>(in.size(), 1));
      std::size_t count = all.size();
      call_back(op->name, "output_alias", [&](char* message, std::size_t size) {
        return op->output_alias(all.data(), &count, self, message, size, handle_of<migraphx_shapes>(&in));
      });
      all.resize(std::min(count, all.size()));
      return all;
    };
  if (op->runs_on_offload_target)
    call_back(op->name, "runs_on_offload_target", [&](char* message, std::size_t size) {
      return op->runs_on_offload_target(&out.runs_on_offload_target, self, message, size);
    });
  return out;
}

}  // namespace

migraphx_status migraphx_experimental_custom_op_destroy(migraphx_experimental_custom_op_t op) { return destroyed(op); }
migraphx_status migraphx_experimental_custom_op_assign_to(migraphx_experimental_custom_op_t output,
                                                          const_migraphx_experimental_custom_op_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_experimental_custom_op_create(migraphx_experimental_custom_op_t* out, void* obj,
                                                       migraphx_experimental_custom_op_copy c,
                                                       migraphx_experimental_custom_op_delete d,
                                                       const char* /*obj_typename*/, const char* name) {
  return made(out, [&] {
    foreign_op made;
    made.name = text_from(name, "name");
    not_null(reinterpret_cast<const void*>(c), "c");
    not_null(reinterpret_cast<const void*>(d), "d");
    void* copy = nullptr;
    if (c(&copy, not_null(obj, "obj")) != migraphx_status_success)
      raise(errc::unsupported, "the object of custom op '" + made.name + "' can be copied");
    made.object = std::shared_ptr<void>(copy, [d](void* p) { d(p); });
    return made;
  });
}
migraphx_status migraphx_experimental_custom_op_set_compute(migraphx_experimental_custom_op_t obj,
                                                            migraphx_experimental_custom_op_compute input) {
  return guarded([&] { object(obj, "obj").compute = input; });
}
migraphx_status migraphx_experimental_custom_op_set_compute_shape(migraphx_experimental_custom_op_t obj,
                                                                  migraphx_experimental_custom_op_compute_shape input) {
  return guarded([&] { object(obj, "obj").compute_shape = input; });
}
migraphx_status migraphx_experimental_custom_op_set_output_alias(migraphx_experimental_custom_op_t obj,
                                                                 migraphx_experimental_custom_op_output_alias input) {
  return guarded([&] { object(obj, "obj").output_alias = input; });
}
migraphx_status migraphx_experimental_custom_op_set_runs_on_offload_target(
    migraphx_experimental_custom_op_t obj, migraphx_experimental_custom_op_runs_on_offload_target input) {
  return guarded([&] { object(obj, "obj").runs_on_offload_target = input; });
}
migraphx_status migraphx_experimental_custom_op_register(migraphx_experimental_custom_op_t op) {
  return guarded([&] { register_custom_op(finished(object(op, "experimental_custom_op"))); });
}
