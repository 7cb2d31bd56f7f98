#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/text/impl/model/bpe.hpp"
#include "kiln/text/impl/model/unigram.hpp"
#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/word_cache.hpp"

namespace kiln::language::detail {

/// What one call of `encode` works in. A tokenizer keeps those that no call uses, with the words they have seen.
struct scratch {
  regex_memory regex;
  split_text pieces;
  std::string valid, normal, spare;
  word_cache words;
  bpe_memory bpe;
  unigram_memory unigram;
};

/// The scratches of one tokenizer: as many as calls ran at once.
class scratch_pool {
 public:
  std::unique_ptr<scratch> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto out = std::move(free_.back());
        free_.pop_back();
        return out;
      }
    }
    return std::make_unique<scratch>();
  }
  void give_back(std::unique_ptr<scratch> s) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(s));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<scratch>> free_;
};

}  // namespace kiln::language::detail
