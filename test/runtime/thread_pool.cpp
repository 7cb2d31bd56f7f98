#include "kiln/runtime/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kiln/runtime/impl/machine/worker_placement.hpp"

namespace {

TEST(thread_pool, runs_each_task_once_with_a_valid_worker) {
  for (unsigned threads : {1U, 2U, 3U, 8U}) {
    kiln::thread_pool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (std::int64_t tasks : {0, 1, 2, 3, 7, 100, 1000}) {
      std::vector<std::atomic<int>> count(static_cast<std::size_t>(tasks));
      std::atomic<bool> valid{true};
      pool.parallel_for(tasks, [&](std::int64_t task, unsigned worker) {
        ++count[static_cast<std::size_t>(task)];
        if (worker >= threads) valid = false;
      });
      EXPECT_TRUE(valid);
      for (const std::atomic<int>& c : count) EXPECT_EQ(c.load(), 1);
    }
  }
}

TEST(thread_pool, zero_threads_means_the_processors) { EXPECT_GE(kiln::default_pool()->size(), 1U); }

TEST(thread_pool, results_are_visible_after_the_join) {
  kiln::thread_pool pool(4);
  std::vector<std::int64_t> plain(64);
  for (std::int64_t round = 1; round <= 3000; ++round) {
    pool.parallel_for(64, [&](std::int64_t task, unsigned) { plain[static_cast<std::size_t>(task)] = round * task; });
    for (std::int64_t task = 0; task < 64; ++task) ASSERT_EQ(plain[static_cast<std::size_t>(task)], round * task);
  }
}

TEST(thread_pool, one_worker_id_is_never_used_by_two_calls_at_once) {
  kiln::thread_pool pool(4);
  std::vector<std::int64_t> sum(pool.size(), 0);  // plain integers: a shared id is a lost count, and a race under TSan
  for (int round = 0; round < 200; ++round)
    pool.parallel_for(100, [&](std::int64_t, unsigned worker) { ++sum[worker]; });
  std::int64_t total = 0;
  for (std::int64_t s : sum) total += s;
  EXPECT_EQ(total, 20000);
}

TEST(thread_pool, each_worker_begins_with_a_stretch_of_its_own) {
  kiln::thread_pool pool(2);
  std::vector<std::int64_t> first(2, -1);
  std::atomic<int> begun{0};
  pool.parallel_for(10, [&](std::int64_t task, unsigned worker) {
    if (first[worker] < 0) first[worker] = task, ++begun;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(first[1], 5);
}

TEST(thread_pool, what_a_busy_worker_leaves_is_done_by_others) {
  kiln::thread_pool pool(2);
  std::atomic<int> done{0};
  pool.parallel_for(10, [&](std::int64_t task, unsigned) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (task == 0 && done < 9 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done, 10);
}

TEST(thread_pool, more_than_one_thread_takes_part) {
  kiln::thread_pool pool(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  pool.parallel_for(2, [&](std::int64_t, unsigned) {
    ++inside;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    if (inside == 2) met = true;
  });
  EXPECT_TRUE(met);
}

TEST(thread_pool, sleeping_workers_wake) {
  kiln::thread_pool pool(2, 0);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> inside{0};
    pool.parallel_for(2, [&](std::int64_t, unsigned) {
      ++inside;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    });
    ASSERT_EQ(inside, 2);
  }
}

TEST(thread_pool, nested_calls_run_inline_with_the_same_worker) {
  kiln::thread_pool pool(3);
  kiln::thread_pool other(2);
  std::atomic<int> inner{0};
  std::atomic<bool> same{true};
  pool.parallel_for(20, [&](std::int64_t, unsigned outer_worker) {
    pool.parallel_for(5, [&](std::int64_t, unsigned worker) {
      ++inner;
      if (worker != outer_worker) same = false;
    });
    other.parallel_for(1, [&](std::int64_t, unsigned) {
      pool.parallel_for(1, [&](std::int64_t, unsigned worker) {
        if (worker != outer_worker) same = false;
      });
    });
  });
  EXPECT_EQ(inner, 100);
  EXPECT_TRUE(same);
}

TEST(thread_pool, many_callers_share_one_pool) {
  kiln::thread_pool pool(3);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::vector<std::int64_t> own(17);
        pool.parallel_for(17, [&](std::int64_t task, unsigned) { own[static_cast<std::size_t>(task)] = task; });
        for (std::int64_t value : own) total += value;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 500 * 136);
}

TEST(thread_pool, first_exception_reaches_the_caller_and_the_pool_lives_on) {
  kiln::thread_pool pool(4);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> ran{0};
    const auto failing = [&](std::int64_t task, unsigned) {
      ++ran;
      if (task % 7 == 3) throw std::runtime_error("task failed");
    };
    EXPECT_THROW(pool.parallel_for(1000, failing), std::runtime_error);
    EXPECT_LT(ran, 1000);
    std::atomic<int> after{0};
    pool.parallel_for(50, [&](std::int64_t, unsigned) { ++after; });
    ASSERT_EQ(after, 50);
  }
  EXPECT_THROW(pool.parallel_for(1, [](std::int64_t, unsigned) { throw 1; }), int);
}

TEST(thread_pool, denormals_are_zero_in_tasks_only) {
  kiln::thread_pool pool(2);
  volatile float tiny = 1e-39F;
  std::atomic<int> zeros{0};
  pool.parallel_for(64, [&](std::int64_t, unsigned) {
    if (tiny * 1.5F == 0) ++zeros;
  });
  const float outside = tiny * 1.5F;
  EXPECT_NE(outside, 0);
#if defined(__SSE2__)
  EXPECT_EQ(zeros, 64);
#endif
}

TEST(thread_pool, a_const_body_is_accepted) {
  kiln::thread_pool pool(2);
  std::atomic<int> count{0};
  const auto body = [&count](std::int64_t, unsigned) { ++count; };
  pool.parallel_for(10, body);
  EXPECT_EQ(count, 10);
}

TEST(thread_pool, branches_and_the_calls_in_them_run_each_task_once) {
  for (unsigned threads : {1U, 2U, 3U, 8U}) {
    kiln::thread_pool pool(threads);
    for (std::int64_t branches : {0, 1, 2, 3, 20}) {
      std::vector<std::atomic<int>> count(static_cast<std::size_t>(branches) * 100);
      std::atomic<bool> valid{true};
      pool.parallel_branches(branches, [&](std::int64_t branch, unsigned) {
        for (std::int64_t call = 0; call < 10; ++call)
          pool.parallel_for(10, [&](std::int64_t task, unsigned worker) {
            ++count[static_cast<std::size_t>(branch * 100 + call * 10 + task)];
            if (worker >= threads) valid = false;
          });
      });
      EXPECT_TRUE(valid);
      for (const std::atomic<int>& c : count) ASSERT_EQ(c.load(), 1) << threads << " threads, " << branches;
    }
  }
}

TEST(thread_pool, a_thread_without_a_branch_takes_part_in_anothers_call) {
  kiln::thread_pool pool(2);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> inside{0};
    std::vector<std::int64_t> sum(2, 0);  // plain integers: a shared id is a lost count, and a race under TSan
    pool.parallel_branches(2, [&](std::int64_t branch, unsigned) {
      if (branch == 1) return;
      pool.parallel_for(2, [&](std::int64_t, unsigned worker) {
        ++inside;
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
        ++sum[worker];
      });
      EXPECT_EQ(sum[0] + sum[1], 2);  // visible once the call returns
    });
    ASSERT_EQ(inside, 2);
    ASSERT_EQ(sum, (std::vector<std::int64_t>{1, 1}));
  }
}

TEST(thread_pool, a_thread_without_a_branch_sleeps_and_wakes_for_a_call) {
  kiln::thread_pool pool(2, 0);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> inside{0};
    pool.parallel_branches(2, [&](std::int64_t branch, unsigned) {
      if (branch != round % 2) return;  // the caller waits, or the worker
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      pool.parallel_for(2, [&](std::int64_t, unsigned) {
        ++inside;
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    ASSERT_EQ(inside, 2);
  }
}

TEST(thread_pool, waiting_for_a_long_branch_takes_no_processor) {
  kiln::thread_pool pool(2);
  const std::clock_t before = std::clock();
  pool.parallel_branches(2, [](std::int64_t branch, unsigned) {
    if (branch == 0) std::this_thread::sleep_for(std::chrono::milliseconds(400));
  });
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

TEST(thread_pool, calls_within_a_branchs_call_run_inline) {
  kiln::thread_pool pool(3);
  std::atomic<bool> same{true};
  std::atomic<int> inner{0};
  pool.parallel_branches(4, [&](std::int64_t, unsigned) {
    pool.parallel_for(20, [&](std::int64_t, unsigned outer_worker) {
      pool.parallel_for(5, [&](std::int64_t, unsigned worker) {
        ++inner;
        if (worker != outer_worker) same = false;
      });
    });
  });
  EXPECT_EQ(inner, 400);
  EXPECT_TRUE(same);
}

TEST(thread_pool, exceptions_in_branches_and_in_their_calls_reach_the_caller) {
  kiln::thread_pool pool(3);
  for (int round = 0; round < 100; ++round) {
    const auto failing = [&](std::int64_t branch, unsigned) {
      pool.parallel_for(50, [&](std::int64_t task, unsigned) {
        if (branch == 2 && task == 17) throw std::runtime_error("task failed");
      });
    };
    EXPECT_THROW(pool.parallel_branches(5, failing), std::runtime_error);
    EXPECT_THROW(pool.parallel_branches(5, [](std::int64_t, unsigned) { throw 1; }), int);
    std::atomic<int> after{0};
    pool.parallel_branches(
        5, [&](std::int64_t, unsigned) { pool.parallel_for(10, [&](std::int64_t, unsigned) { ++after; }); });
    ASSERT_EQ(after, 50);
  }
}

TEST(thread_pool, many_callers_of_branches_share_one_pool) {
  kiln::thread_pool pool(3);
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        pool.parallel_branches(4, [&](std::int64_t, unsigned) {
          pool.parallel_for(17, [&](std::int64_t task, unsigned) { total += task; });
        });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 200 * 4 * 136);
}

TEST(worker_placement, a_worker_that_is_missed_leaves_the_callers_processor_and_may_return) {
  using kiln::worker_placement;
  cpu_set_t usual;
  ASSERT_EQ(sched_getaffinity(0, sizeof usual, &usual), 0);
  if (CPU_COUNT(&usual) < 2) GTEST_SKIP() << "one processor";
  cpu_set_t here;  // this thread stays where it is
  CPU_ZERO(&here);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
  ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
  const auto shares = [&](pid_t thread) {
    cpu_set_t of;
    EXPECT_EQ(sched_getaffinity(thread, sizeof of, &of), 0);
    CPU_AND(&of, &of, &here);
    return CPU_COUNT(&of) == 1;
  };

  worker_placement placement;
  std::atomic<pid_t> id{0};
  std::atomic<int> turn{0};
  std::thread worker([&] {
    sched_setaffinity(0, sizeof usual, &usual);
    placement.begin();
    id = gettid();
    turn.wait(0);
    placement.settle();
    turn = 2;
    turn.notify_all();
    turn.wait(2);
  });
  while (id == 0) std::this_thread::yield();
  const auto now = worker_placement::clock::now();
  placement.missed(now + std::chrono::hours(1));  // it has just been woken
  EXPECT_TRUE(shares(id));
  placement.came();
  placement.missed({});
  EXPECT_TRUE(shares(id)) << "it was not missed for long";
  placement.came();
  placement.missed(now - worker_placement::patience);
  EXPECT_FALSE(shares(id));
  placement.missed({});
  EXPECT_FALSE(shares(id));
  turn = 1;
  turn.notify_all();
  while (turn != 2) std::this_thread::yield();
  EXPECT_TRUE(shares(id));
  turn = 3;
  turn.notify_all();
  worker.join();
  ASSERT_EQ(sched_setaffinity(0, sizeof usual, &usual), 0);
}

}  // namespace
