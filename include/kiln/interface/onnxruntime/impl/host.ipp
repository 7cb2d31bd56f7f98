#include "kiln/interface/onnxruntime/host.hpp"

#include <new>

namespace kiln::onnxruntime {

namespace {

const void* const* table_of(const OrtApiBase& base) {
  const void* const* const table = base.GetApi(api_version);
  if (!table)
    raise(fault::of(errc::unsupported, "kiln's plugin runs in ONNX Runtime 1.24 or later: version", "1.24",
                    std::string_view(base.GetVersionString())));
  return table;
}

std::uint32_t version_of(const OrtApiBase& base) {
  for (const std::uint32_t v : {default_memory_version, profiling_version})
    if (base.GetApi(v)) return v;
  return api_version;
}

status_code code_of(errc code) {
  switch (code) {
    case errc::invalid_argument:
    case errc::shape_mismatch: return status_code::invalid_argument;
    case errc::unsupported: return status_code::not_implemented;
    case errc::not_found:
    case errc::io: return status_code::no_such_file;
    case errc::malformed: return status_code::invalid_graph;
    case errc::limit:
    case errc::canceled: return status_code::runtime_exception;
    case errc::internal: break;
  }
  return status_code::ep_fail;
}

errc code_of(status_code code) {
  switch (code) {
    case status_code::invalid_argument: return errc::invalid_argument;
    case status_code::no_such_file: return errc::not_found;
    case status_code::not_implemented: return errc::unsupported;
    case status_code::invalid_graph: return errc::malformed;
    default: return errc::internal;
  }
}

}  // namespace

host::host(const OrtApiBase& base)
    : version_(version_of(base)), api_(table_of(base)), ep_(api_(api::ep_api)), editor_(api_(api::model_editor_api)) {}

void host::refuse(OrtStatus* status) const {
  const std::string message = api_(api::status_message, status);
  const errc code = code_of(api_(api::status_code_of, status));
  api_(api::release_status, status);
  raise(code, "ONNX Runtime: " + message);
}

OrtStatus* host::status_of_exception() const noexcept {
  try {
    throw;
  } catch (const error& e) {
    return api_(api::create_status, code_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return api_(api::create_status, status_code::runtime_exception, "out of memory");
  } catch (const std::exception& e) {
    return api_(api::create_status, status_code::ep_fail, e.what());
  } catch (...) {
    return api_(api::create_status, status_code::ep_fail, "unknown exception");
  }
}

void host::log(const OrtLogger* logger, severity level, const std::string& message) const noexcept {
  if (!logger) return;
  OrtStatus* const failed = api_(api::log_message, logger, level, message.c_str(), "kiln", 0, "kiln");
  if (failed) api_(api::release_status, failed);
}

std::vector<std::int64_t> host::extents_of(const OrtTensorTypeAndShapeInfo* of) const {
  std::vector<std::int64_t> out(get<std::size_t>(api::rank, of));
  if (!out.empty()) call(api::extents, of, out.data(), out.size());
  return out;
}

std::vector<std::pair<std::string, std::string>> host::entries(const OrtSessionOptions* of) const {
  const owned pairs(*this, api::release_pairs, get<OrtKeyValuePairs*>(api::session_entries, of));
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  std::size_t count = 0;
  api_(api::pairs_of, pairs.get(), &keys, &values, &count);
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(keys[i], values[i]);
  return out;
}

}  // namespace kiln::onnxruntime
