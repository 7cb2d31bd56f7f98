#include "kiln/pass/lent_threads.hpp"

#include <utility>

namespace kiln::detail {
namespace {
thread_local const parts_runner* lent = nullptr;
}

lent_threads::lent_threads(parts_runner run) : run_(std::move(run)), before_(std::exchange(lent, &run_)) {}
lent_threads::~lent_threads() { lent = before_; }

void for_each_part(std::int64_t parts, const std::function<void(std::int64_t)>& f) {
  if (lent && parts > 1) return (*lent)(parts, f);
  for (std::int64_t i = 0; i < parts; ++i) f(i);
}

}  // namespace kiln::detail
