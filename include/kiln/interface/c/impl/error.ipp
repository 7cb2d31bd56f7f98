#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <span>

#include "kiln/core/impl/dimension_table.hpp"
#include "kiln/interface/c/impl/guard.hpp"
#include "kiln/version.hpp"

namespace kiln::c {
namespace {

struct error_record {
  kiln_status status = KILN_OK;
  std::string whole, parts[KILN_ERROR_FOUND + 1];
};

// The last error of each thread. Not thread_local: an object with a destructor would keep the library in the process
// until its thread ends, whoever closes it.
class error_records {
 public:
  error_records() {
    if (pthread_key_create(&key_, [](void* record) { shared().forget(static_cast<error_record*>(record)); }) != 0)
      throw std::bad_alloc();
  }
  ~error_records() { pthread_key_delete(key_); }
  error_records(const error_records&) = delete;
  error_records& operator=(const error_records&) = delete;

  static error_records& shared() {
    static error_records all;
    return all;
  }
  error_record* find() const { return static_cast<error_record*>(pthread_getspecific(key_)); }
  error_record& get() {
    if (error_record* known = find()) return *known;
    const std::lock_guard lock(mutex_);
    error_record& made = all_.emplace_back();
    pthread_setspecific(key_, &made);
    return made;
  }

 private:
  void forget(const error_record* record) {
    const std::lock_guard lock(mutex_);
    all_.remove_if([&](const error_record& r) { return &r == record; });
  }
  pthread_key_t key_{};
  std::mutex mutex_;
  std::list<error_record> all_;
};

kiln_status keep(error_record to) {
  const kiln_status status = to.status;
  error_records::shared().get() = std::move(to);
  return status;
}

kiln_status keep(const error& e) {
  return keep(
      {status_of(e.code()), e.what(), {e.message(), e.op(), e.instruction(), e.source(), e.expected(), e.found()}});
}

// Frees the process's expressions of dims when the library is closed, after every other static object of it.
struct expression_owner {
  ~expression_owner() { delete &detail::expressions::shared_table(); }
};
[[gnu::init_priority(101)]] expression_owner expressions;

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

kiln_status keep_error() noexcept {
  try {
    try {
      throw;
    } catch (const error& e) {
      return keep(e);
    } catch (const std::bad_alloc&) {
      return keep(error(errc::limit, "the machine has memory for what is asked for"));
    } catch (const std::exception& e) {
      return keep(error(errc::internal, e.what()));
    } catch (...) {
      return keep(error(errc::internal, "an exception of an unknown type"));
    }
  } catch (...) {
    return KILN_LIMIT;  // no memory for the message
  }
}

void refuse_null(const char* what) { raise(errc::invalid_argument, std::string(what) + " is given: found NULL"); }

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
  const error_record* const r = error_records::shared().find();
  return r ? r->whole.c_str() : "";
}

kiln_status kiln_last_error_status(void) {
  const error_record* const r = error_records::shared().find();
  return r ? r->status : KILN_OK;
}

const char* kiln_last_error_part(kiln_error_part part) {
  const error_record* const r = error_records::shared().find();
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
