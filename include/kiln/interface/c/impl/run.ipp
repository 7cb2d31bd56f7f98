#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/runtime/named_inputs.hpp"
#include "kiln/runtime/options.hpp"

using namespace kiln;
using namespace kiln::c;

namespace {

// The workspace's lists for one run.
class run_lists {
 public:
  explicit run_lists(kiln_workspace& w) : w_(w) {}
  ~run_lists() {
    w_.inputs.clear();
    w_.outputs.clear();
  }
  run_lists(const run_lists&) = delete;
  run_lists& operator=(const run_lists&) = delete;

 private:
  kiln_workspace& w_;
};

const argument& checked(const kiln_tensor* tensor, bool has_device, const char* what) {
  const kiln_tensor& t = given(tensor, what);
  if (!has_device && !dlpack::is_host(t.where))
    raise(fault::of(errc::invalid_argument,
                    "this target's tensors are in the host's memory: DLPack device of an operand", "1 (CPU)",
                    static_cast<int>(t.where.type)));
  return t.value;
}

void take_outputs(kiln_workspace& w, bool has_device, std::span<kiln_tensor*> outputs) {
  for (kiln_tensor* const t : outputs) {
    if (t && t->read_only) raise(errc::invalid_argument, "an output is no read-only tensor");
    w.outputs.push_back(t ? checked(t, has_device, "an output") : argument());
  }
}

// Runs with the inputs that the workspace lists.
void run(const kiln_executable& e, kiln_workspace& w, std::span<kiln_tensor*> outputs,
         const kiln_run_options* options) {
  take_outputs(w, e.has_device, outputs);
  if (options)
    e.compiled.run(w.memory, w.inputs, w.outputs, options->options);
  else
    e.compiled.run(w.memory, w.inputs, w.outputs);
  std::vector<std::unique_ptr<kiln_tensor>> made;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (!outputs[k])
      made.push_back(std::make_unique<kiln_tensor>(kiln_tensor{std::move(w.outputs[k])}));
    else if (is_object(w.outputs[k].get_shape().type))
      outputs[k]->value = std::move(w.outputs[k]);
  auto next = made.begin();
  for (kiln_tensor*& t : outputs)
    if (!t) t = (next++)->release();
}

}  // namespace

kiln_status kiln_run_options_create(kiln_run_options** options) {
  return guarded([&] {
    kiln_run_options*& out = given(options, "options");
    out = new kiln_run_options;
    out->options.cancel = &out->cancel;
  });
}

void kiln_run_options_destroy(kiln_run_options* options) { delete options; }

kiln_status kiln_run_options_set(kiln_run_options* options, const char* name, const char* value) {
  return guarded(
      [&] { set_option(given(options, "options").options, not_null(name, "name"), not_null(value, "value")); });
}

kiln_status kiln_run_options_set_stream(kiln_run_options* options, void* stream) {
  return guarded([&] { given(options, "options").options.stream = stream; });
}

kiln_status kiln_run_options_set_profile(kiln_run_options* options,
                                         void (*profile)(void* user, size_t step, double seconds), void* user) {
  return guarded([&] {
    run_options& to = given(options, "options").options;
    if (profile)
      to.profile = [profile, user](std::size_t step, double seconds) { profile(user, step, seconds); };
    else
      to.profile = nullptr;
  });
}

kiln_status kiln_run_options_cancel(kiln_run_options* options, int cancel) {
  return guarded([&] { given(options, "options").cancel.store(cancel != 0, std::memory_order_relaxed); });
}

kiln_status kiln_workspace_create(kiln_workspace** workspace) {
  return guarded([&] {
    kiln_workspace*& out = given(workspace, "workspace");
    out = new kiln_workspace;
  });
}

void kiln_workspace_destroy(kiln_workspace* workspace) { delete workspace; }

kiln_status kiln_workspace_bind(kiln_workspace* workspace, const kiln_executable* executable, size_t input_count,
                                const kiln_tensor* const* inputs) {
  return guarded([&] {
    kiln_workspace& w = given(workspace, "workspace");
    const kiln_executable& e = given(executable, "executable");
    std::vector<shape> like;
    for (const kiln_tensor* const t : given_array(inputs, input_count, "inputs"))
      like.push_back(given(t, "an input").value.get_shape());
    e.compiled.bind(w.memory, like);
  });
}

kiln_status kiln_workspace_info(const kiln_workspace* workspace, size_t* bytes, size_t* growths) {
  return guarded([&] {
    const kiln_workspace& w = given(workspace, "workspace");
    put(bytes, w.memory.bytes());
    put(growths, w.memory.growths());
  });
}

kiln_status kiln_run(const kiln_executable* executable, kiln_workspace* workspace, size_t input_count,
                     const kiln_tensor* const* inputs, size_t output_count, kiln_tensor** outputs,
                     const kiln_run_options* options) {
  return guarded([&] {
    const kiln_executable& e = given(executable, "executable");
    kiln_workspace& w = given(workspace, "workspace");
    const run_lists lists(w);
    for (const kiln_tensor* const t : given_array(inputs, input_count, "inputs"))
      w.inputs.push_back(checked(t, e.has_device, "an input"));
    run(e, w, given_array(outputs, output_count, "outputs"), options);
  });
}

kiln_status kiln_run_named(const kiln_executable* executable, kiln_workspace* workspace, size_t input_count,
                           const char* const* names, const kiln_tensor* const* inputs, size_t output_count,
                           kiln_tensor** outputs, const kiln_run_options* options) {
  return guarded([&] {
    const kiln_executable& e = given(executable, "executable");
    kiln_workspace& w = given(workspace, "workspace");
    const run_lists lists(w);
    const auto given_names = given_array(names, input_count, "names");
    std::vector<named_input> named;
    for (const kiln_tensor* const t : given_array(inputs, input_count, "inputs"))
      named.push_back({not_null(given_names[named.size()], "a name"), checked(t, e.has_device, "an input")});
    w.inputs = ordered_inputs(e.compiled, named);
    run(e, w, given_array(outputs, output_count, "outputs"), options);
  });
}
