#include "kiln/interface/caller.hpp"

#include <pthread.h>

#include <list>
#include <mutex>
#include <new>

#include "kiln/core/impl/dimension_table.hpp"

namespace kiln::caller {
namespace {

// The last error of each thread. Not thread_local: an object with a destructor would keep the library in the process
// until its thread ends, whoever closes it.
class error_records {
 public:
  error_records() {
    if (pthread_key_create(&key_, [](void* record) { shared().forget(static_cast<last_error*>(record)); }) != 0)
      throw std::bad_alloc();
  }
  ~error_records() { pthread_key_delete(key_); }
  error_records(const error_records&) = delete;
  error_records& operator=(const error_records&) = delete;

  static error_records& shared() {
    static error_records all;
    return all;
  }
  last_error* find() const { return static_cast<last_error*>(pthread_getspecific(key_)); }
  last_error& get() {
    if (last_error* known = find()) return *known;
    const std::lock_guard lock(mutex_);
    last_error& made = all_.emplace_back();
    pthread_setspecific(key_, &made);
    return made;
  }

 private:
  void forget(const last_error* record) {
    const std::lock_guard lock(mutex_);
    all_.remove_if([&](const last_error& r) { return &r == record; });
  }
  pthread_key_t key_{};
  std::mutex mutex_;
  std::list<last_error> all_;
};

errc keep(const error& e) {
  error_records::shared().get() = {
      e.code(), e.what(), {e.message(), e.op(), e.instruction(), e.source(), e.expected(), e.found()}};
  return e.code();
}

}  // namespace

const last_error* find_last_error() { return error_records::shared().find(); }

errc keep_last_error() noexcept {
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
    return errc::limit;  // no memory for the message
  }
}

void refuse_null(const char* what) { raise(errc::invalid_argument, std::string(what) + " is given: found NULL"); }

expression_owner::~expression_owner() { delete &detail::expressions::shared_table(); }

}  // namespace kiln::caller
