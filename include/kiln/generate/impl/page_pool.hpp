#pragma once
#include <cstddef>
#include <memory>

#include "kiln/runtime/device.hpp"

namespace kiln::language::detail {

/// Memory for some positions of a sequence, in all layers; the last owner gives it back. Sequences that begin alike
/// share pages, and what is shared is not written.
using page = std::shared_ptr<std::byte>;

/// Where pages come from: memory that is given back serves again, and what is much more than is in use is freed. Any
/// number of threads.
class page_pool {
 public:
  /// Of the host's memory, or of a device's.
  explicit page_pool(std::size_t page_bytes, std::shared_ptr<const device> where = nullptr);
  /// Another pool of the same kind.
  page_pool another() const;
  /// Memory of `page_bytes`, whose content is undefined.
  page take() const;
  /// A page with the content of another.
  page copy(const page& of) const;
  std::size_t page_bytes() const;
  /// Frees memory that was given back; whether there was any.
  bool free_spare() const;
  /// Pages that have owners.
  std::size_t used() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace kiln::language::detail
