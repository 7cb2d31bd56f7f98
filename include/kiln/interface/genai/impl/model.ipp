#include "kiln/interface/genai/impl/handles.hpp"
#include "kiln/interface/language_session.hpp"

namespace kiln::genai {

loaded_model::loaded_model(language::config c) {
  const language::session s = language::session_of(c, current_gpu());
  on_gpu_ = s.on_gpu();
  for (const std::string& r : s.remarks) write_log(log_item::warning, r);
  decoder_ = language::load_model(std::move(c), s);
}
namespace {

// Calls a function that edits a provider of the configuration.
template <class Edit, class... Values>
OgaResult* edited(OgaConfig* config, const char* provider, Edit edit, Values... values) noexcept {
  return guarded(
      [&] { edit(given(config, "the configuration").value, text(provider, "the provider's name"), values...); });
}
OgaModel* new_model(language::config c) { return new OgaModel{std::make_shared<const loaded_model>(std::move(c))}; }

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;
namespace language = kiln::language;

OgaResult* OgaCreateConfig(const char* config_path, OgaConfig** out) {
  return made(out, [&] { return new OgaConfig{language::read_config(text(config_path, "the folder"))}; });
}
OgaResult* OgaCreateConfigFromPackageEp(const char*, const char*, OgaConfig** out) {
  return made(out, []() -> OgaConfig* {
    raise(kiln::errc::unsupported,
          "OgaCreateConfigFromPackageEp: kiln reads a model's folder (OgaCreateConfig), no "
          "packages of models");
  });
}
void OgaDestroyConfig(OgaConfig* config) { delete config; }
OgaResult* OgaConfigClearProviders(OgaConfig* config) {
  return guarded([&] { language::clear_providers(given(config, "the configuration").value); });
}
OgaResult* OgaConfigAppendProvider(OgaConfig* config, const char* provider) {
  return edited(config, provider, language::append_provider);
}
OgaResult* OgaConfigSetProviderOption(OgaConfig* config, const char* provider, const char* key, const char* value) {
  return guarded([&] {
    language::set_provider_option(given(config, "the configuration").value, text(provider, "the provider's name"),
                                  text(key, "the option's name"), text(value, "the option's value"));
  });
}
OgaResult* OgaConfigAddModelData(OgaConfig* config, const char* model_filename, const void* model_data,
                                 size_t model_data_length) {
  return guarded([&] {
    const auto bytes = given_array(static_cast<const std::byte*>(model_data), model_data_length, "the model's data");
    const std::string_view name = text(model_filename, "the model's file name");
    if (bytes.empty()) raise(kiln::errc::invalid_argument, "the data of '" + std::string(name) + "' is empty");
    given(config, "the configuration")
        .value.model_data.insert_or_assign(std::string(name), std::vector<std::byte>(bytes.begin(), bytes.end()));
  });
}
OgaResult* OgaConfigRemoveModelData(OgaConfig* config, const char* model_filename) {
  return guarded([&] {
    auto& all = given(config, "the configuration").value.model_data;
    const auto at = all.find(text(model_filename, "the model's file name"));
    if (at == all.end())
      raise(kiln::errc::not_found, "the configuration has no data of '" + std::string(model_filename) + "'");
    all.erase(at);
  });
}
OgaResult* OgaConfigSetDecoderProviderOptionsHardwareDeviceType(OgaConfig* config, const char* provider,
                                                                const char* hardware_device_type) {
  return guarded([&] {
    language::set_hardware_device_type(given(config, "the configuration").value, text(provider, "the provider's name"),
                                       text(hardware_device_type, "the hardware's type"));
  });
}
OgaResult* OgaConfigSetDecoderProviderOptionsHardwareDeviceId(OgaConfig* config, const char* provider,
                                                              uint32_t hardware_device_id) {
  return edited(config, provider, language::set_hardware_device_id, hardware_device_id);
}
OgaResult* OgaConfigSetDecoderProviderOptionsHardwareVendorId(OgaConfig* config, const char* provider,
                                                              uint32_t hardware_vendor_id) {
  return edited(config, provider, language::set_hardware_vendor_id, hardware_vendor_id);
}
OgaResult* OgaConfigClearDecoderProviderOptionsHardwareDeviceType(OgaConfig* config, const char* provider) {
  return edited(config, provider, language::set_hardware_device_type, std::nullopt);
}
OgaResult* OgaConfigClearDecoderProviderOptionsHardwareDeviceId(OgaConfig* config, const char* provider) {
  return edited(config, provider, language::set_hardware_device_id, std::nullopt);
}
OgaResult* OgaConfigClearDecoderProviderOptionsHardwareVendorId(OgaConfig* config, const char* provider) {
  return edited(config, provider, language::set_hardware_vendor_id, std::nullopt);
}
OgaResult* OgaConfigOverlay(OgaConfig* config, const char* json) {
  return guarded(
      [&] { language::overlay(given(config, "the configuration").value, text(json, "the overlay's JSON")); });
}

OgaResult* OgaCreateRuntimeSettings(OgaRuntimeSettings** out) {
  return made(out, [] { return new OgaRuntimeSettings; });
}
void OgaDestroyRuntimeSettings(OgaRuntimeSettings* settings) { delete settings; }
OgaResult* OgaRuntimeSettingsSetHandle(OgaRuntimeSettings* settings, const char* handle_name, void* handle) {
  return guarded([&] {
    given(settings, "the runtime settings");
    const std::string name = text(handle_name, "the handle's name");
    if (handle) raise(kiln::errc::unsupported, "runtime handle '" + name + "': kiln takes no handles");
  });
}

OgaResult* OgaCreateModel(const char* config_path, OgaModel** out) {
  return OgaCreateModelWithRuntimeSettings(config_path, nullptr, out);
}
OgaResult* OgaCreateModelFromConfig(const OgaConfig* config, OgaModel** out) {
  return made(out, [&] { return new_model(given(config, "the configuration").value); });
}
OgaResult* OgaCreateModelWithRuntimeSettings(const char* config_path, const OgaRuntimeSettings*, OgaModel** out) {
  return made(out, [&] { return new_model(language::read_config(text(config_path, "the folder"))); });
}
void OgaDestroyModel(OgaModel* model) { delete model; }
OgaResult* OgaModelGetType(const OgaModel* model, const char** out) {
  return told(out, [&] { return new_string(given(model, "the model").value->settings().type); });
}
OgaResult* OgaModelGetDeviceType(const OgaModel* model, const char** out) {
  return told(out, [&] { return new_string(given(model, "the model").value->device()); });
}
