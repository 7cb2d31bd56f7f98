#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kiln/runtime/thread_pool.hpp"

namespace kiln {

/// 128 bits of XXH3 over texts and data, each with its length, so that borders between them count.
class content_hash {
 public:
  content_hash();
  ~content_hash();
  content_hash(const content_hash&) = delete;
  content_hash& operator=(const content_hash&) = delete;
  void add(std::string_view text);
  /// Adds a hash of the hashes of the data's pieces, which threads take.
  void add(std::span<const std::byte> data, thread_pool& pool);
  /// 32 hexadecimal digits.
  std::string str() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace kiln
