#include "emulated_device.hpp"

#include <ucontext.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "emulated_copies.hpp"

namespace kiln::gpu {

emulated_lane now;

namespace {

enum class state { runs, waits_for_warp, waits_for_block, done };

struct lane_coroutine {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  state is = state::runs;
};

constexpr std::size_t stack_bytes = 64 * 1024;
std::vector<lane_coroutine> lanes_of_block;
std::vector<std::byte> slots;
ucontext_t scheduler;
const std::function<void(char*)>* current_body;
char* current_shared;
std::exception_ptr failure;  // of the lane that ran last: none leaves the stack of its lane

void enter() {
  try {
    (*current_body)(current_shared);
    end_stores();
  } catch (...) {
    failure = std::current_exception();
  }
  lanes_of_block[static_cast<std::size_t>(now.thread)].is = state::done;
}

void wait(state what) {
  const int thread = now.thread;
  lane_coroutine& lane = lanes_of_block[static_cast<std::size_t>(thread)];
  lane.is = what;
  swapcontext(&lane.context, &scheduler);
}

// Lets a group of lanes go on when each of them waits for the same.
bool release(std::size_t from, std::size_t to, state what) {
  for (std::size_t i = from; i < to; ++i)
    if (lanes_of_block[i].is != what) return false;
  for (std::size_t i = from; i < to; ++i) lanes_of_block[i].is = state::runs;
  return true;
}

void run_block(int threads) {
  const auto count = static_cast<std::size_t>(threads);
  for (std::size_t i = 0; i < count; ++i) {
    lane_coroutine& lane = lanes_of_block[i];
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = stack_bytes;
    lane.context.uc_link = &scheduler;
    lane.is = state::runs;
    makecontext(&lane.context, enter, 0);
  }
  for (;;) {
    bool ran = false, all_done = true;
    for (std::size_t i = 0; i < count; ++i) {
      if (lanes_of_block[i].is == state::runs) {
        now.thread = static_cast<int>(i);
        swapcontext(&scheduler, &lanes_of_block[i].context);
        if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
        ran = true;
      }
      all_done = all_done && lanes_of_block[i].is == state::done;
    }
    if (all_done) return;
    for (std::size_t w = 0; w < count; w += warp_lanes) ran |= release(w, w + warp_lanes, state::waits_for_warp);
    ran |= release(0, count, state::waits_for_block);
    if (!ran) throw std::logic_error("lanes wait for each other");
  }
}

}  // namespace

void wait_for_block() { wait(state::waits_for_block); }
void wait_for_warp() { wait(state::waits_for_warp); }
void wait_for_others() { wait(state::runs); }
std::byte* exchange_slot(int thread) { return slots.data() + thread * exchange_bytes; }

void run_grid(int blocks_x, int blocks_y, int threads, std::size_t shared_bytes, const std::function<void(char*)>& body,
              int apart) {
  lanes_of_block.resize(static_cast<std::size_t>(threads));
  for (lane_coroutine& lane : lanes_of_block)
    if (!lane.stack) lane.stack = std::make_unique<char[]>(stack_bytes);
  slots.resize(static_cast<std::size_t>(threads) * exchange_bytes);
  clear_copies(threads);
  constexpr std::size_t aligned = 1024;
  std::vector<char> memory(shared_bytes + aligned);
  current_shared = memory.data() + (aligned - reinterpret_cast<std::uintptr_t>(memory.data()) % aligned);
  current_body = &body;
  for (int first = 0; first < apart; ++first)
    for (int i = first; i < blocks_x * blocks_y; i += apart) {
      std::memset(memory.data(), 0xff, memory.size());
      now.block_x = i % blocks_x, now.block_y = i / blocks_x, now.blocks_x = blocks_x;
      run_block(threads);
    }
}

}  // namespace kiln::gpu
