#include "kiln/interface/onnxruntime/shim/shim.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <new>

#include "kiln/core/error.hpp"
#include "kiln/interface/onnxruntime/shim/absent.hpp"
#include "kiln/interface/onnxruntime/shim/migraphx_options.hpp"
#include "kiln/interface/onnxruntime/shim/replaced.hpp"

namespace kiln::onnxruntime {

namespace {

/// How many pointers lie from here to the end of the loaded part of the file: a table is not longer.
std::size_t readable(const void* const* table) {
  struct question {
    std::uintptr_t from, to;
  } asked{reinterpret_cast<std::uintptr_t>(table), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) -> int {
        auto& q = *static_cast<question*>(data);
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
          if (part.p_type == PT_LOAD && begin <= q.from && q.from < end) q.to = end;
        }
        return q.to != 0;
      },
      &asked);
  return (asked.to - std::min(asked.from, asked.to)) / sizeof(void*);
}

constexpr std::size_t most_slots = 1024;  // more than any version has

}  // namespace

const char* provider_of(std::string_view name) {
  for (const char* own : {"MIGraphX", "MIGraphXExecutionProvider"})
    if (name == own) return "MIGraphXExecutionProvider";
  for (const char* own : {"kiln", "Kiln", "KilnExecutionProvider"})
    if (name == own) return "KilnExecutionProvider";
  return nullptr;
}

shim& shim::instance() {
  static shim& only = *new shim;
  return only;
}

shim::shim() {
  std::string missing;
  try {
    stock_ = find_stock();
    if (const void* const* const first = stock_.base->GetApi(1)) {
      real_.emplace(first);
      environment_.emplace(*stock_.base);
      return;
    }
    missing = stock_.path + " has no C interface of version 1";
  } catch (const std::exception& e) {
    missing = e.what();
  }
  absent_table(missing);
}

const void* const* shim::api(std::uint32_t version) noexcept try {
  if (!real_) return version == 0 ? nullptr : absent_table({});
  const void* const* const table = stock_.base->GetApi(version);
  if (!table) return nullptr;
  const std::scoped_lock only(lock_);
  std::unique_ptr<const void*[]>& own = tables_[table];
  if (!own) {
    own = std::make_unique<const void*[]>(most_slots);
    std::copy_n(table, std::min(readable(table), most_slots), own.get());
    replace(own.get());
  }
  return own.get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

const char* shim::version() const { return real_ ? stock_.base->GetVersionString() : ""; }

void* shim::exported(const char* name) const { return real_ ? dlsym(stock_.handle, name) : nullptr; }

OrtStatus* shim::status(status_code code, const std::string& message) const {
  const function_table table = real_ ? *real_ : function_table(absent_table({}));
  return table(api::create_status, code, message.c_str());
}

OrtStatus* shim::guarded(const std::function<void()>& body) const noexcept {
  // every call of the table that stands for a missing ONNX Runtime answers that it is missing
  if (!real_) return function_table(absent_table({}))(api::create_env, severity::warning, "", nullptr);
  try {
    body();
    return nullptr;
  } catch (const error& e) {
    const bool wrong = e.code() == errc::invalid_argument, missing = e.code() == errc::not_found;
    return status(wrong     ? status_code::invalid_argument
                  : missing ? status_code::no_such_file
                            : status_code::fail,
                  e.what());
  } catch (const std::exception& e) {
    return status(status_code::fail, e.what());
  } catch (...) {
    return status(status_code::fail, "unknown exception");
  }
}

OrtStatus* shim::append(OrtSessionOptions* options, std::string_view provider, const char* const* keys,
                        const char* const* values, std::size_t count) noexcept {
  return guarded([&] {
    if (!options) raise(errc::invalid_argument, std::string(provider) + ": the session's options are null");
    if (count && (!keys || !values)) raise(errc::invalid_argument, std::string(provider) + ": its options are null");
    for (std::size_t i = 0; i < count; ++i)
      if (!keys[i] || !values[i])
        raise(errc::invalid_argument, std::string(provider) + ": option " + std::to_string(i) + " is null");
    environment_->append(options, std::string(provider), keys, values, count);
  });
}

OrtStatus* shim::append(OrtSessionOptions* options, const OrtMIGraphXProviderOptions* given) noexcept {
  OrtStatus* appended = nullptr;
  OrtStatus* const read = guarded([&] {
    if (!given) raise(errc::invalid_argument, "the pointer to OrtMIGraphXProviderOptions is null");
    const auto pairs = options_of(*given);
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : pairs) keys.push_back(key.c_str()), values.push_back(value.c_str());
    appended = append(options, provider_of("MIGraphX"), keys.data(), values.data(), keys.size());
  });
  return read ? read : appended;
}

OrtStatus* shim::append(OrtSessionOptions* options, int device) noexcept {
  OrtMIGraphXProviderOptions given{};
  given.device_id = device;
  return append(options, &given);
}

}  // namespace kiln::onnxruntime
