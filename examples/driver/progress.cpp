#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace kiln::driver {

namespace {
bool hidden = false;
bool on_terminal() { return !hidden && ::isatty(STDERR_FILENO) == 1; }
}  // namespace

void hide_progress() { hidden = true; }

std::string progress_bar(std::size_t done, std::size_t all) {
  constexpr std::size_t width = 24;
  const std::size_t filled = all == 0 ? width : std::min(width, done * width / all);
  return "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "]";
}

progress_line::progress_line() : terminal_(on_terminal()) {}
progress_line::~progress_line() { clear(); }

void progress_line::show(const std::string& text) {
  if (!terminal_ || since_.ms() < 1000) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void progress_line::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

busy_line::busy_line(std::string text) {
  if (!on_terminal()) return;
  thread_ = std::thread([this, text = std::move(text)] {
    progress_line line;
    const stopwatch clock;
    std::unique_lock lock(mutex_);
    while (!end_.wait_for(lock, std::chrono::milliseconds(250), [this] { return ended_; }))
      line.show(fmt::format("{} {:.0f} s", text, clock.ms() / 1e3));
  });
}

busy_line::~busy_line() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

}  // namespace kiln::driver
