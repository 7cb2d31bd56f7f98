#include "isolate.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "kiln/core/error.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// A byte before the report tells it from an exception's text.
[[noreturn]] void child(int out, const std::function<std::string()>& work) {
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::string text;
  try {
    text = "+" + work();
  } catch (const std::exception& e) {
    text = std::string("-") + e.what();
  }
  write_all(out, text);
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

isolated isolate(const std::function<std::string()>& work, double limit_seconds, const std::function<void()>& waiting) {
  int ends[2];
  if (::pipe(ends) != 0) raise(errc::io, fmt::format("can't make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int why = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    raise(errc::io, fmt::format("can't start a process: {}", std::strerror(why)));
  }
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], work);
  }
  ::close(ends[1]);

  const stopwatch clock;
  std::string text;
  bool expired = false;
  for (;;) {
    pollfd ready{ends[0], POLLIN, 0};
    const int n = ::poll(&ready, 1, 200);
    if (n > 0) {
      char block[1 << 14];
      const ssize_t got = ::read(ends[0], block, sizeof block);
      if (got > 0) text.append(block, static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    if (waiting) waiting();
    if (limit_seconds > 0 && clock.ms() > 1e3 * limit_seconds) {
      expired = true;
      ::kill(pid, SIGKILL);
      break;
    }
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (expired) return {{}, fmt::format("no result within {} s", limit_seconds)};
  if (WIFSIGNALED(status))
    return {{}, fmt::format("crashed: signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  if (WEXITSTATUS(status) != 0 || text.empty())
    return {{}, fmt::format("ended early with exit status {}", WEXITSTATUS(status))};
  if (text.front() == '-') return {{}, text.substr(1)};
  return {text.substr(1), {}};
}

}  // namespace kiln::driver
