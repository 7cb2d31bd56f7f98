#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "statistics.hpp"

namespace kiln::driver {

/// Lets no line appear from now on: what a forked case does, since its parent shows one.
void hide_progress();

/// How far something is, as "[=====     ]".
std::string progress_bar(std::size_t done, std::size_t all);

/// A line on standard error that says what is going on, shown only on a terminal and only from the second second on.
class progress_line {
 public:
  progress_line();
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  /// Shows the text now, if it is time.
  void show(const std::string& text);
  /// Removes the line, so that other text may follow.
  void clear();

 private:
  stopwatch since_;
  bool terminal_, shown_ = false;
};

/// Shows a text and the seconds gone by while it lives, from a thread of its own (none without a terminal).
class busy_line {
 public:
  explicit busy_line(std::string text);
  ~busy_line();

 private:
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace kiln::driver
