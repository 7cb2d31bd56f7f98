#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "kiln/interface/c/impl/guard.hpp"
#include "kiln/version.hpp"

namespace kiln::c {
namespace {

[[gnu::init_priority(101)]] expression_owner expressions;
static_assert(std::extent_v<decltype(last_error::parts)> == KILN_ERROR_FOUND + 1);

}  // namespace

kiln_status status_of(errc code) {
  switch (code) {
    case errc::invalid_argument: return KILN_BAD_PARAM;
    case errc::shape_mismatch: return KILN_SHAPE_MISMATCH;
    case errc::unsupported: return KILN_UNSUPPORTED;
    case errc::not_found: return KILN_NOT_FOUND;
    case errc::malformed: return KILN_MALFORMED;
    case errc::io: return KILN_IO;
    case errc::limit: return KILN_LIMIT;
    case errc::canceled: return KILN_CANCELED;
    case errc::internal: return KILN_INTERNAL;
  }
  return KILN_INTERNAL;
}

errc code_of(kiln_status status) {
  for (int code = 0; code <= static_cast<int>(errc::internal); ++code)
    if (status_of(static_cast<errc>(code)) == status) return static_cast<errc>(code);
  return errc::internal;
}

char* new_string(std::string_view text) {
  char* const out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!out) throw std::bad_alloc();
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = 0;
  return out;
}

}  // namespace kiln::c

using namespace kiln::c;

const char* kiln_last_error(void) {
  const last_error* const r = find_last_error();
  return r ? r->whole.c_str() : "";
}

kiln_status kiln_last_error_status(void) {
  const last_error* const r = find_last_error();
  return r ? status_of(r->code) : KILN_OK;
}

const char* kiln_last_error_part(kiln_error_part part) {
  const last_error* const r = find_last_error();
  const auto i = static_cast<unsigned>(part);
  return r && i < std::size(r->parts) ? r->parts[i].c_str() : "";
}

const char* kiln_status_name(kiln_status status) {
  if (status == KILN_OK) return "ok";
  if (status < KILN_OK || status > KILN_INTERNAL) return "no status";
  return kiln::to_string(code_of(status)).data();
}

const char* kiln_version(void) { return kiln::version_text; }

void kiln_string_destroy(char* text) { std::free(text); }
