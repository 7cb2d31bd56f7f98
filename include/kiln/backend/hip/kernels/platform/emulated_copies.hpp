#pragma once
#include "kiln/backend/hip/kernels/platform/emulated.hpp"

// The copy unit of sm_90 and what waits for it, for lanes that the CPU runs. Whoever runs the lanes defines these; what
// they mean, nvidia.hpp says. Included by platform.hpp.

namespace kiln::gpu {

void start_barrier(u64* at, int count);
void arrive_at(u64* at);
void arrive_and_expect(u64* at, int bytes);
void await_barrier(u64* at, int phase);
inline void fence_barriers() {}
inline void fence_shared() {}

/// Waits for so many threads that call it with this number.
void meet(int number, int threads);
template <int Threads> void sync_some(int number) { meet(number, Threads); }
template <int Count> void leave_registers() {}
template <int Count> void take_registers() {}

void tma_load(void* to, const tensor_map& map, int along, int across, u64* barrier);
void copy_places(void* to, const tensor_map& map, int along, int place, int line, u64* barrier);
void copy_windows(void* to, const tensor_map& map, int channel, int col, int row, int image, int right, int down,
                  u64* barrier);
void store_box(const tensor_map& map, const void* from, int along, int across);
void store_places(const tensor_map& map, const void* from, int along, int place, int line);
void store_commit();
/// Waits until of this lane's groups of stores all but the last `pending` have read shared memory.
void await_groups(int pending);
template <int Pending> void await_stores() { await_groups(Pending); }

}  // namespace kiln::gpu
