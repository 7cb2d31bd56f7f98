#pragma once
#include "kiln/kernel/attention/attention.hpp"
#include "kiln/kernel/attention/paged_problem.hpp"

namespace kiln::kernels {

/// Calls `run` with the type that keys and values are stored as.
template <class Run> auto with_stored_type(dtype stored, Run&& run) {
  return with_stored_products(stored, [&]<class Products>(std::in_place_type_t<Products>) {
    return run(std::in_place_type<typename Products::stored>);
  });
}

/// The queries of one sequence, whose keys and values are in pages.
struct paged_task : attention_problem {
  std::byte* const* blocks = nullptr;
  std::int64_t block = 32, window = 0;
  op::paged_layer at;
  float softcap = 0;
  const float* sinks = nullptr;  ///< of the first query
  std::ptrdiff_t sink_row = 0;
  /// Memory for `keys_at_once` keys and values as floats: many queries read them there.
  float* gathered = nullptr;

  bool has_scales() const { return op::has_page_scales(stored); }
  std::byte* page(std::int64_t position) const { return blocks[position / block]; }
  template <class Stored> Stored* keys_at(std::int64_t g, std::int64_t position) const {
    return reinterpret_cast<Stored*>(page(position) + at.keys) + (g * block + position % block) * depth;
  }
  template <class Stored> Stored* values_at(std::int64_t g, std::int64_t position) const {
    return reinterpret_cast<Stored*>(page(position) + at.values) + (g * block + position % block) * value_depth;
  }
  float* scales_at(std::int64_t g, std::int64_t position, bool of_values) const {
    std::byte* const from = page(position) + (of_values ? at.value_scales : at.key_scales);
    return reinterpret_cast<float*>(from) + g * block + position % block;
  }
  template <class Stored>
  attention_piece<Stored> piece_at(std::int64_t g, std::int64_t position, std::int64_t from, std::int64_t count) const {
    return {keys_at<Stored>(g, position), values_at<Stored>(g, position), from, count};
  }
  /// Keys [j, j + count) and their values as floats.
  void gather(std::int64_t g, std::int64_t j, std::int64_t count) const {
    with_stored_type(stored, [&]<class Stored>(std::in_place_type_t<Stored>) {
      float *k_to = gathered, *v_to = gathered + depth * keys_at_once;
      for (std::int64_t p = j; p < j + count; ++p, k_to += depth, v_to += value_depth) {
        const bool scaled = has_scales();
        widen(keys_at<Stored>(g, p), depth, scaled ? *scales_at(g, p, false) : 1, k_to);
        widen(values_at<Stored>(g, p), value_depth, scaled ? *scales_at(g, p, true) : 1, v_to);
      }
    });
  }
  /// Writes the keys and values of one token of head g.
  void write(std::int64_t g, std::int64_t position, const float* new_k, const float* new_v) const {
    with_stored_type(stored, [&]<class Stored>(std::in_place_type_t<Stored>) {
      narrow(new_k, depth, keys_at<Stored>(g, position), scales_at(g, position, false));
      narrow(new_v, value_depth, values_at<Stored>(g, position), scales_at(g, position, true));
    });
  }

 private:
  using V = vec<float, native_lanes<float>>;
  template <class Stored> static void widen(const Stored* from, std::int64_t n, float scale, float* to) {
    constexpr std::int64_t lanes = native_lanes<float>;
    std::int64_t c = 0;
    for (; c + lanes <= n; c += lanes) store(to + c, load_stored<V>(from + c) * broadcast<V>(scale));
    if (c < n)
      store_n(to + c, load_stored_n<V>(from + c, static_cast<int>(n - c)) * broadcast<V>(scale),
              static_cast<int>(n - c));
  }
  template <class Stored> void narrow(const float* from, std::int64_t n, Stored* to, float* scale) const {
    if constexpr (std::is_same_v<Stored, float>) {
      std::copy_n(from, n, to);
    } else if constexpr (sizeof(Stored) == 2) {
      for (std::int64_t c = 0; c < n; ++c) to[c] = Stored(from[c]);
    } else {
      float greatest = 0;
      for (std::int64_t c = 0; c < n; ++c) greatest = max(greatest, abs(from[c]));
      const float most = op::greatest_paged(stored), by = op::page_factor(stored, greatest);
      *scale = greatest / most;
      for (std::int64_t c = 0; c < n; ++c) {
        if constexpr (std::is_same_v<Stored, std::int8_t>)
          to[c] = static_cast<std::int8_t>(kiln::round(from[c] * by));
        else
          to[c] = Stored(from[c] * by);
      }
    }
  }
};

/// Tasks of a run over sequences in pages, and the memory that each worker needs.
class paged_attention_run {
 public:
  /// Floats of scratch for so many workers, whatever the sequences are.
  static std::int64_t scratch_size(const paged_problem& p, unsigned workers) {
    return task_size(p) * workers + places(p.tokens);
  }

  paged_attention_run(thread_pool& pool, const paged_problem& p, float* scratch)
      : pool_(pool),
        p_(p),
        batch_(*p.batch),
        firsts_(reinterpret_cast<first_task*>(scratch)),
        scratch_(scratch + places(p.tokens)),
        each_(task_size(p)) {}

  void run() {
    write();
    std::int64_t tasks = 0, token = 0, s = 0;
    for (const op::paged_sequence& q : batch_.sequences) {
      firsts_[s++] = {tasks, token};
      tasks += (grouped(q) ? p_.kv_heads : p_.heads) * ceil_div(queries(q), task_rows(q));
      token += q.tokens;
    }
    pool_.parallel_for(tasks, [&](std::int64_t task, unsigned worker) {
      const first_task* const at =
          std::upper_bound(firsts_, firsts_ + s, task, [](std::int64_t t, const first_task& f) { return t < f.task; }) -
          1;
      attend(batch_.sequences[static_cast<std::size_t>(at - firsts_)], at->token, task - at->task,
             scratch_ + static_cast<std::int64_t>(worker) * each_);
    });
  }

 private:
  struct first_task {
    std::int64_t task, token;
  };
  static constexpr std::int64_t few_rows = 16;  // that read pages where they are
  static std::int64_t places(std::int64_t tokens) { return round_up(4 * tokens, 16); }
  static std::int64_t most_rows(const paged_problem& p) {
    return std::max(std::min(p.tokens, attention_rows), p.heads / p.kv_heads);
  }
  static paged_task sized(const paged_problem& p) {
    paged_task t;
    t.depth = p.depth, t.value_depth = p.value_depth, t.stored = p.stored;
    return t;
  }
  static std::int64_t gathered_size(const paged_problem& p) {
    return most_rows(p) > few_rows ? round_up(sized(p).keys_at_once * (p.depth + p.value_depth), 16) : 0;
  }
  template <class Products> static std::int64_t size_of_block(const paged_problem& p) {
    return attention_block<Products, paged_task>::scratch_size(sized(p), most_rows(p));
  }
  static std::int64_t task_size(const paged_problem& p) {
    const std::int64_t in_place = with_stored_products(
        p.stored, [&]<class Products>(std::in_place_type_t<Products>) { return size_of_block<Products>(p); });
    return gathered_size(p) + std::max({in_place, size_of_block<attention_in_vectors>(p),
                                        most_rows(p) > few_rows ? size_of_block<attention_on_matrix_unit>(p) : 0});
  }
  // Where a sequence has one token, its query heads that read the same keys meet these together, unless that would
  // leave workers idle.
  bool grouped(const op::paged_sequence& s) const {
    return s.tokens == 1 && p_.heads != p_.kv_heads &&
           p_.kv_heads * static_cast<std::int64_t>(batch_.sequences.size()) >= static_cast<std::int64_t>(pool_.size());
  }
  std::int64_t queries(const op::paged_sequence& s) const { return grouped(s) ? p_.heads / p_.kv_heads : s.tokens; }
  std::int64_t task_rows(const op::paged_sequence& s) const {
    if (grouped(s)) return p_.heads / p_.kv_heads;
    attention_problem all;
    all.heads = p_.heads * static_cast<std::int64_t>(batch_.sequences.size()), all.kv_heads = all.heads;
    all.queries = s.tokens, all.keys = s.past + s.tokens, all.depth = p_.depth, all.value_depth = p_.value_depth;
    return attention_task_rows(all, pool_.size());
  }
  paged_task task_of(const op::paged_sequence& s) const {
    paged_task t = sized(p_);
    t.heads = p_.heads, t.kv_heads = p_.kv_heads, t.queries = s.tokens, t.keys = s.past + s.tokens;
    t.q.head = p_.q.head, t.q.row = p_.q.row, t.k.row = p_.depth, t.v.row = p_.value_depth;
    t.out_head = p_.out_head, t.out_row = p_.out_row;
    t.scale = p_.scale, t.softcap = p_.softcap, t.window = p_.window, t.causal = true;
    t.blocks = s.blocks, t.block = batch_.block, t.at = batch_.layers[static_cast<std::size_t>(p_.layer)];
    return t;
  }

  // Writes the new keys and values of all sequences.
  void write() {
    std::int64_t token = 0;
    for (const op::paged_sequence& s : batch_.sequences) {
      const paged_task t = task_of(s);
      const auto one = [&](std::int64_t i) {
        for (std::int64_t g = 0; g < p_.kv_heads; ++g)
          t.write(g, s.past + i, static_cast<const float*>(p_.k.at) + g * p_.k.head + (token + i) * p_.k.row,
                  static_cast<const float*>(p_.v.at) + g * p_.v.head + (token + i) * p_.v.row);
      };
      constexpr std::int64_t alone = 16;
      if (s.tokens < alone)
        for (std::int64_t i = 0; i < s.tokens; ++i) one(i);
      else
        pool_.parallel_for(ceil_div(s.tokens, alone), [&](std::int64_t part, unsigned) {
          for (std::int64_t i = part * alone; i < std::min(s.tokens, (part + 1) * alone); ++i) one(i);
        });
      token += s.tokens;
    }
  }

  void attend(const op::paged_sequence& s, std::int64_t token, std::int64_t task, float* scratch) const {
    paged_task t = task_of(s);
    const std::int64_t most = task_rows(s), blocks = ceil_div(queries(s), most);
    const std::int64_t row0 = task % blocks * most, head = task / blocks;
    t.q.at = static_cast<const float*>(p_.q.at) + token * p_.q.row;
    t.out = p_.out + token * p_.out_row;
    const std::int64_t group = p_.heads / p_.kv_heads;
    if (grouped(s)) {
      t.queries = group, t.heads = p_.kv_heads, t.causal = false;  // all at the last position
      t.q.row = t.q.head, t.q.head *= group;
      t.out_row = t.out_head, t.out_head *= group;
    }
    if (p_.sinks) {
      t.sinks = p_.sinks + head * (grouped(s) ? group : 1) * p_.sink_step;
      t.sink_row = grouped(s) ? p_.sink_step : 0;
    }
    const std::int64_t rows = std::min(most, t.queries - row0);
    const auto run = [&]<class Products>(std::in_place_type_t<Products>) {
      attention_block<Products, paged_task> block(t, most, scratch);
      return block.run(0, head, row0, rows);
    };
    if (rows <= few_rows) {
      with_stored_products(t.stored, run);
      return;
    }
    t.gathered = scratch;
    scratch += gathered_size(p_);
    attention_problem floats = t;
    floats.stored = dtype::f32;
    if (attention_on_matrix_unit::serves(floats) && run(std::in_place_type<attention_on_matrix_unit>)) return;
    run(std::in_place_type<attention_in_vectors>);
  }

  thread_pool& pool_;
  const paged_problem& p_;
  const op::paged_batch& batch_;
  first_task* firsts_;
  float* scratch_;
  std::int64_t each_;
};

inline std::int64_t paged_attention_scratch_size(const paged_problem& p, unsigned workers) {
  return paged_attention_run::scratch_size(p, workers);
}
/// `scratch` is aligned to 64 bytes.
inline void paged_attention(thread_pool& pool, const paged_problem& p, float* scratch) {
  paged_attention_run(pool, p, scratch).run();
}

}  // namespace kiln::kernels
