#include "kiln/runtime/content_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <vector>

namespace kiln {

struct content_hash::state {
  alignas(64) XXH3_state_t of{};
};

content_hash::content_hash() : state_(std::make_unique<state>()) { XXH3_128bits_reset(&state_->of); }
content_hash::~content_hash() = default;

void content_hash::add(std::string_view text) {
  const std::uint64_t size = text.size();
  XXH3_128bits_update(&state_->of, &size, sizeof size);
  XXH3_128bits_update(&state_->of, text.data(), text.size());
}

void content_hash::add(std::span<const std::byte> data, thread_pool& pool) {
  constexpr std::size_t piece = 4 << 20;
  std::vector<XXH128_hash_t> sums((data.size() + piece - 1) / piece);
  const auto hash_piece = [&](std::size_t i) {
    const std::size_t at = i * piece;
    sums[i] = XXH3_128bits(data.data() + at, std::min(piece, data.size() - at));
  };
  if (sums.size() < 2)
    for (std::size_t i = 0; i < sums.size(); ++i) hash_piece(i);
  else
    pool.parallel_for(static_cast<std::int64_t>(sums.size()),
                      [&](std::int64_t i, unsigned) { hash_piece(static_cast<std::size_t>(i)); });
  add({reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(XXH128_hash_t)});
}

std::string content_hash::str() const {
  XXH128_canonical_t digits;
  XXH128_canonicalFromHash(&digits, XXH3_128bits_digest(&state_->of));
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digits.digest) (out += hex[byte >> 4]) += hex[byte & 15];
  return out;
}

}  // namespace kiln
