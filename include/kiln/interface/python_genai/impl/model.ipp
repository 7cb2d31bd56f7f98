#include <atomic>

#include "kiln/interface/python_genai/bind.hpp"
#include "kiln/runtime/options.hpp"

namespace kiln::python {

held_model::held_model(const language::config& c, language::session s)
    : session(std::move(s)), compiled(language::load_model(c, session)) {}

namespace {

void add_model_data(language::config& c, const std::string& name, const py::buffer& data) {
  const py::buffer_info view = data.request();
  if (view.ndim > 1 || (view.ndim == 1 && view.strides[0] != view.itemsize))
    raise(errc::invalid_argument, "model data '" + name + "': expected bytes, found an array with strides");
  const auto* const from = static_cast<const std::byte*>(view.ptr);
  c.model_data.insert_or_assign(name, std::vector<std::byte>(from, from + view.size * view.itemsize));
}

void bind_config(py::module_& m) {
  py::class_<language::config> c(m, "Config",
                                 "What genai_config.json of a folder says, to be changed before a Model is made.");
  c.def(py::init([](const py::object& folder) { return language::read_config(path_of_object(folder)); }),
        py::arg("config_path"));
  c.def("append_provider", &language::append_provider, py::arg("name"),
        "Adds a provider: cpu, or MIGraphX, as which kiln knows itself.");
  c.def("set_provider_option", &language::set_provider_option, py::arg("provider"), py::arg("key"), py::arg("value"),
        "Sets an option of a provider, which is added where it is not there.");
  c.def("clear_providers", &language::clear_providers, "Removes all providers: the model runs on the CPU.");
  c.def("add_model_data", add_model_data, py::arg("name"), py::arg("data"),
        "The bytes of a file of the model, which come before the folder's.");
  c.def(
      "remove_model_data", [](language::config& to, const std::string& name) { to.model_data.erase(name); },
      py::arg("name"), "Forgets the bytes of a file.");
  c.def(
      "overlay", [](language::config& to, const std::string& json) { language::overlay(to, json); }, py::arg("json"),
      "Merges JSON text over what stands: the keys that it has are replaced.");
  const auto hardware = [&](const char* what, auto set, auto example, const char* doc) {
    using value_type = decltype(example);
    const std::string name = std::string("decoder_provider_options_hardware_") + what;
    c.def(("set_" + name).c_str(),
          [set](language::config& to, const std::string& provider, const value_type& v) { set(to, provider, v); },
          py::arg("provider"), py::arg("value"), doc);
    c.def(("clear_" + name).c_str(),
          [set](language::config& to, const std::string& provider) { set(to, provider, std::nullopt); },
          py::arg("provider"), "Forgets it.");
  };
  hardware("device_type", language::set_hardware_device_type, std::string(),
           "Where the provider runs: \"cpu\" or \"gpu\".");
  const char* const kept = "Kept with the provider; its option `device_id` chooses the GPU.";
  hardware("device_id", language::set_hardware_device_id, std::int64_t(), kept);
  hardware("vendor_id", language::set_hardware_vendor_id, std::int64_t(), kept);
}

// The GPU of models whose configuration names none.
std::atomic<unsigned> current_gpu = 0;

std::shared_ptr<held_model> load(const py::object& from, const py::object& target, const py::kwargs& options) {
  language::config c = py::isinstance<language::config>(from) ? py::cast<const language::config&>(from)
                                                              : language::read_config(path_of_object(from));
  language::session s = language::session_of(c, current_gpu);
  if (!target.is_none()) s.target = py::cast<std::string>(target);
  for (const auto& [name, value] : options) {
    const bool is_flag = PyBool_Check(value.ptr());
    set_option(s.options, py::cast<std::string>(name),
               is_flag ? value.ptr() == Py_True ? "true" : "false" : py::cast<std::string>(py::str(value)));
  }
  const py::gil_scoped_release released;
  return std::make_shared<held_model>(c, std::move(s));
}

bool is_gpu(std::string_view target) { return target.starts_with("hip") || target == "gpu"; }

[[noreturn]] void refuse(const char* what) { raise(errc::unsupported, std::string("not supported: ") + what); }

}  // namespace

void bind_model(py::module_& m) {
  bind_config(m);
  m.def(
      "set_current_gpu_device_id", [](unsigned id) { current_gpu = id; }, py::arg("device_id"),
      "The GPU of models that are made later, where their configuration names none.");
  m.def(
      "get_current_gpu_device_id", [] { return current_gpu.load(); }, "The number that was set; 0 at first.");
  py::class_<held_model, std::shared_ptr<held_model>> c(
      m, "Model",
      "A language model, compiled: of a folder with genai_config.json, or of a Config. `target` and other keywords, "
      "such "
      "as `threads=2`, are those of kiln.compile(), and come before the folder's. Any number of generators and threads "
      "share one.");
  c.def(py::init(&load), py::arg("config"), py::kw_only(), py::arg("target") = py::none());
  c.def_property_readonly(
      "type", [](const held_model& h) { return h.settings().type; }, "The model's type by its configuration.");
  c.def_property_readonly(
      "device_type", [](const held_model& h) { return is_gpu(h.session.target) ? "MIGraphX" : "CPU"; },
      "Where it runs: \"CPU\" or \"MIGraphX\", ONNX Runtime's word for an AMD GPU.");
  c.def_property_readonly(
      "target", [](const held_model& h) { return h.session.target; }, "kiln's name of where it runs.");
  c.def_property_readonly(
      "remarks", [](const held_model& h) { return h.compiled->program().report().remarks; },
      "What the importer and compilation took for granted or changed, such as the precision.");
  c.def_property_readonly(
      "vocabulary_size", [](const held_model& h) { return h.compiled->vocabulary_size(); },
      "Tokens that it tells apart, and so scores of a row of logits.");
  c.def_property_readonly(
      "context_length", [](const held_model& h) { return h.compiled->context_length(); },
      "Tokens of a sequence at most.");
  c.def(
      "create_multimodal_processor", [](const held_model&) { refuse("models over images and audio"); },
      "Raises an Error: kiln runs models over text.");
  c.def(
      "create_streaming_processor", [](const held_model&) { refuse("models over audio"); },
      "Raises an Error: kiln runs models over text.");
}

}  // namespace kiln::python
