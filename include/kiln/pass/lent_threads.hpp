#pragma once
#include <cstdint>
#include <functional>

namespace kiln::detail {

/// Calls its second argument with each number below the first, from any threads, and returns after the last call.
using parts_runner = std::function<void(std::int64_t, const std::function<void(std::int64_t)>&)>;

/// Lends threads to what passes compute in this thread, for as long as it lives: pools belong to a higher layer.
class lent_threads {
 public:
  explicit lent_threads(parts_runner run);
  lent_threads(const lent_threads&) = delete;
  lent_threads& operator=(const lent_threads&) = delete;
  ~lent_threads();

 private:
  parts_runner run_;
  const parts_runner* before_;
};

/// Calls f(0) to f(parts - 1) in the lent threads, or one after another where none are.
void for_each_part(std::int64_t parts, const std::function<void(std::int64_t)>& f);

}  // namespace kiln::detail
