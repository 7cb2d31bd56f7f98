#include "kiln/interface/onnxruntime/shim/absent.hpp"

#include <array>

#include "kiln/interface/onnxruntime/shim/abi.hpp"

namespace kiln::onnxruntime {

namespace {

/// What statuses are where no ONNX Runtime makes them.
struct own_status {
  status_code code;
  std::string message;
};

own_status* missing = nullptr;  // what every call answers; it is nobody's to release

const own_status* of(const OrtStatus* s) { return reinterpret_cast<const own_status*>(s); }
OrtStatus* refuse() { return reinterpret_cast<OrtStatus*>(missing); }
void* nothing() { return nullptr; }
const char* no_text() { return ""; }

OrtStatus* create(status_code code, const char* message) noexcept {
  return reinterpret_cast<OrtStatus*>(new own_status{code, message ? message : ""});
}
status_code code_of(const OrtStatus* s) { return s ? of(s)->code : status_code::ok; }
const char* message_of(const OrtStatus* s) { return s ? of(s)->message.c_str() : ""; }
void release(OrtStatus* s) {
  if (s != refuse()) delete of(s);
}

using table = std::array<const void*, 1024>;  // more than any version has

template <std::size_t Index, class Function> void set(table& to, slot<Index, Function>, const void* f) {
  to[Index] = f;
}

}  // namespace

const void* const* absent_table(const std::string& message) {
  static const table functions = [&] {
    missing = new own_status{status_code::no_such_file, message};
    table out;
    out.fill(reinterpret_cast<const void*>(&refuse));
    set(out, api::create_status, reinterpret_cast<const void*>(&create));
    set(out, api::status_code_of, reinterpret_cast<const void*>(&code_of));
    set(out, api::status_message, reinterpret_cast<const void*>(&message_of));
    set(out, api::release_status, reinterpret_cast<const void*>(&release));
    set(out, api::build_info, reinterpret_cast<const void*>(&no_text));
    set(out, api::training_api, reinterpret_cast<const void*>(&nothing));
    set(out, api::model_editor_api, reinterpret_cast<const void*>(&nothing));
    set(out, api::compile_api, reinterpret_cast<const void*>(&nothing));
    set(out, api::ep_api, reinterpret_cast<const void*>(&nothing));
    return out;
  }();
  return functions.data();
}

}  // namespace kiln::onnxruntime
