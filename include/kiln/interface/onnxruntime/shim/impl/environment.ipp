#include "kiln/interface/onnxruntime/shim/environment.hpp"

#include "kiln/interface/onnxruntime/shim/stock.hpp"

namespace kiln::onnxruntime {

OrtStatus* environment_of_program::create(const std::function<OrtStatus*(OrtEnv**)>& make, OrtEnv** out,
                                          std::optional<severity> level) {
  const std::scoped_lock only(lock_);
  if (OrtStatus* const failed = make(out)) return failed;
  env_ = *out;
  ++held_;
  if (own_) {
    // the program's options came before its environment: the one there is gets its level of log lines
    if (level)
      if (OrtStatus* const failed = real_(api::set_env_log_level, env_, *level)) real_(api::release_status, failed);
    real_(api::release_env, env_);
    own_ = false;
  }
  return nullptr;
}

void environment_of_program::release(OrtEnv* env) {
  const std::scoped_lock only(lock_);
  if (env && env == env_ && held_ > 0 && --held_ == 0) {
    for (const std::string& name : registered_)
      if (OrtStatus* const failed = real_(api::unregister_library, env, name.c_str()))
        real_(api::release_status, failed);  // the program did it itself
    registered_.clear();
    env_ = nullptr;
  }
  real_(api::release_env, env);
}

std::vector<const OrtEpDevice*> environment_of_program::devices(const std::string& name) const {
  const OrtEpDevice* const* all = nullptr;
  std::size_t count = 0;
  host_->call(api::ep_devices, env_, &all, &count);
  std::vector<const OrtEpDevice*> out;
  for (std::size_t i = 0; i < count; ++i)
    if (name == host_->call(api::device_ep_name, all[i])) out.push_back(all[i]);
  return out;
}

void environment_of_program::append(OrtSessionOptions* options, const std::string& name, const char* const* keys,
                                    const char* const* values, std::size_t count) {
  const std::scoped_lock only(lock_);
  if (!host_) host_.emplace(base_);
  if (!env_) {
    env_ = host_->get<OrtEnv*>(api::create_env, severity::warning, "onnxruntime");
    own_ = true;
  }
  std::vector<const OrtEpDevice*> own = devices(name);
  if (own.empty()) {
    host_->call(api::register_library, env_, name.c_str(), find_plugin().c_str());
    registered_.push_back(name);
    own = devices(name);
  }
  if (own.empty()) raise(errc::not_found, name + ": kiln's plugin offers no device here");
  host_->call(api::append_provider, options, env_, own.data(), own.size(), keys, values, count);
}

}  // namespace kiln::onnxruntime
