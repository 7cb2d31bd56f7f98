#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/page_cases.hpp"

// The thread that fills pages ahead: when it starts and ends, and what a forked process has of it.

namespace kiln::testing {
namespace {

std::ptrdiff_t threads_here() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}
// Made before what the library keeps, so that it goes after it: then no thread of the library runs code or reads memory
// that is gone.
constexpr int left_thread = 9;
struct no_thread_left {
  const std::ptrdiff_t before = threads_here();
  ~no_thread_left() {
    if (threads_here() > before) std::_Exit(left_thread);
  }
};
const no_thread_left after_the_library;

// How many there are once they are `wanted`, or in the end.
std::ptrdiff_t threads_at_last(std::ptrdiff_t wanted) {
  const auto end = clock::now() + std::chrono::seconds(20);
  while (threads_here() != wanted && clock::now() < end) wait(std::chrono::milliseconds(20));
  return threads_here();
}

// What a child process returns; -1 where it hangs.
template <class F> int of_child(F f) {
  std::fflush(nullptr);  // else the child writes it, too
  const ::pid_t child = ::fork();
  if (child == 0) {
    f();
    std::exit(0);
  }
  int status = 0;
  for (const auto end = clock::now() + std::chrono::seconds(20); clock::now() < end;
       wait(std::chrono::milliseconds(10)))
    if (::waitpid(child, &status, WNOHANG) == child) return status;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return -1;
}

class page_threads : public pages {};

// What no scope wanted a thread for goes at once.
TEST_F(page_threads, start_a_thread_only_where_a_scope_wants_one) {
  wait(page_scope::kept_free_for * 3 / 2);  // for that of an earlier case
  const std::ptrdiff_t before = threads_here();
  buffer all;
  {
    const page_scope scope;
    all = filled(120 * mib, 1);
    filled(70 * mib, 2);
  }
  EXPECT_EQ(threads_here(), before);
  const std::byte* const at = all.data();
  all = buffer();
  EXPECT_EQ(threads_here(), before);
  EXPECT_LE(resident(at, 120 * mib), (page_scope::kept_free_bytes + 4 * mib) / 4096);
  {
    const page_scope scope(true);
    all = filled(120 * mib, 1);
  }
  EXPECT_EQ(threads_at_last(before), before) << "of the scope";
  const auto freed = clock::now();
  all = buffer();
  const std::ptrdiff_t meanwhile = threads_here();
  if (clock::now() - freed < page_scope::kept_free_for) {
    EXPECT_EQ(meanwhile, before + 1);
  }
  EXPECT_EQ(threads_at_last(before), before);
}

// A child has no thread but the one that forks; it exits, or goes on to load.
TEST_F(page_threads, are_those_of_a_forked_process) {
  if (::dlsym(RTLD_DEFAULT, "__tsan_init")) GTEST_SKIP() << "a watched child may start no thread";
  const auto leave = [] {};
  const auto go_on = [] {
    load(150 * mib, true);
    load(150 * mib, true, true);
  };
  EXPECT_EQ(of_child(go_on), 0) << "before the thread starts";
  load(120 * mib, true, true);
  EXPECT_EQ(of_child(leave), 0) << "while it waits for its time";
  EXPECT_EQ(of_child([] { load(150 * mib, true, true); }), 0) << "and leaves no thread";
  EXPECT_EQ(of_child(go_on), 0) << "while it waits for its time";
  {
    const page_scope scope(true);
    std::vector<buffer> all;
    for (int k = 0; k < 20; ++k) all.push_back(filled(3 * mib, k));
    for (int k = 0; k < 5; ++k) EXPECT_EQ(of_child(leave), 0) << "during a load";
    EXPECT_EQ(of_child([&] {
                for (int k = 0; k < 20; ++k)
                  if (!holds(all[static_cast<std::size_t>(k)], k)) std::_Exit(1);
                for (int k = 0; k < 20; ++k) all.push_back(filled(3 * mib, k));
                all.clear();
                go_on();
              }),
              0)
        << "during a load";
  }
  wait(page_scope::kept_free_for * 3 / 2);
  EXPECT_EQ(of_child(go_on), 0) << "after it ended";
  load(120 * mib, true, true);
  EXPECT_EQ(of_child([&] {
              go_on();
              std::vector<std::thread> own(4);  // none of which is taken for that of the parent
              for (std::thread& t : own) t = std::thread([] { wait(std::chrono::milliseconds(20)); });
              go_on();
              for (std::thread& t : own) t.join();
            }),
            0)
      << "with threads of its own";
  // At any moment of a thread that gives pages to the system.
  load(300 * mib, true, true);
  for (int k = 0; k < 50; ++k) {
    ASSERT_EQ(of_child([] { load(40 * mib, false); }), 0);
    wait(page_scope::kept_free_for / 40);
  }
}

}  // namespace
}  // namespace kiln::testing
