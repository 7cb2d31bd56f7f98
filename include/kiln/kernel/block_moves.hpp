#pragma once
#include "kiln/kernel/block_pointwise.hpp"

namespace kiln::kernels {

/// Asks for the memory that comes into use later.
KILN_FN void fetch(block_fetch* fetches, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    block_fetch& f = fetches[k];
    for (std::int64_t line = 0; line < f.bytes; line += 64) __builtin_prefetch(f.at + line);
    f.at += f.bytes;
  }
}

/// Steps that move blocks between memory and the accumulator.
template <block_width Width, class = std::make_index_sequence<block_vectors<Width>>>
struct block_moves;

template <block_width Width, std::size_t... V>
struct block_moves<Width, std::index_sequence<V...>> {
  using code = block_code<Width>;
  template <std::size_t>
  using vector = float_vec;
  static constexpr std::ptrdiff_t step = native_lanes<float>;

  template <block_form Form>
  KILN_FN static float_vec read(const void* from, std::size_t at) {
    if constexpr (Form == block_form::f32)
      return load<float_vec>(static_cast<const float*>(from) + at);
    else if constexpr (Form == block_form::f16)
      return load_half<float_vec>(static_cast<const std::uint16_t*>(from) + at);
    else if constexpr (Form == block_form::bf16)
      return load_bfloat16<float_vec>(static_cast<const std::uint16_t*>(from) + at);
    else
      return (float_vec)load_mask(static_cast<const bool*>(from) + at, native_lanes<float>);
  }
  template <block_form Form>
  KILN_FN static void write(void* to, std::size_t at, float_vec x) {
    if constexpr (Form == block_form::f32)
      store(static_cast<float*>(to) + at, x);
    else if constexpr (Form == block_form::f16)
      store_half(static_cast<std::uint16_t*>(to) + at, x);
    else if constexpr (Form == block_form::bf16)
      store_bfloat16(static_cast<std::uint16_t*>(to) + at, x);
    else
      store_mask(static_cast<bool*>(to) + at, (float_mask)x, native_lanes<float>);
  }
  template <block_form Form>
  KILN_FN static float_vec rounded(float_vec x) {
    vec<std::uint16_t, native_lanes<float>> bits;
    write<Form>(&bits, 0, x);
    return read<Form>(&bits, 0);
  }

  template <block_form Form>
  static void load_step(const block_step* s, block_frame* frame, vector<V>...) {
    const void* const from = frame->at[s->in[0]];
    return code::next(s, frame, read<Form>(from, V * step)...);
  }
  template <block_form Form>
  static void store_step(const block_step* s, block_frame* frame, vector<V>... a) {
    void* const to = frame->at[s->out];
    (write<Form>(to, V * step, a), ...);
    return code::next(s, frame, a...);
  }
  static void stream_step(const block_step* s, block_frame* frame, vector<V>... a) {
    float* const to = code::place(frame, s->out);
    (stream(to + V * step, a), ...);
    return code::next(s, frame, a...);
  }
  static void repeat_step(const block_step* s, block_frame* frame, vector<V>... a) {
    float* const to = code::place(frame, s->out);
    const float_vec values[] = {a...};
    for (std::size_t v = 0; v < block_vectors<block_width::wide>; ++v) store(to + v * step, values[v % sizeof...(V)]);
    return code::next(s, frame, a...);
  }
  template <block_form Form>
  static void round_step(const block_step* s, block_frame* frame, vector<V>... a) {
    return code::next(s, frame, rounded<Form>(a)...);
  }
  // A quotient by a repeated value is a product where the reciprocal is a normal number.
  KILN_FN static bool has_inverse(float by) {
    const float magnitude = by < 0 ? -by : by;
    return magnitude >= 0x1p-126F && magnitude <= 0x1p126F;
  }
  static void divide_step(const block_step* s, block_frame* frame, vector<V>... a) {
    const float* const by = code::place(frame, s->in[0]);
    if (!frame->varied && has_inverse(*by)) [[likely]] {
      const auto inverse = broadcast<float_vec>(1.0F / *by);
      return code::next(s, frame, (a * inverse)...);
    }
    return code::next(s, frame, (a / load<float_vec>(by + V * step))...);
  }
  static void end_step(const block_step*, block_frame*, vector<V>...) {}

  static void run(const block_step* program, block_frame& frame, const block_loop& loop) {
    const auto first = reinterpret_cast<typename code::function>(program->call);
    for (std::int64_t block = 0; block < loop.blocks; ++block) {
      fetch(loop.fetches, loop.fetch_count);
      first(program, &frame, vector<V>{}...);
      for (std::size_t k = 0; k < loop.move_count; ++k) frame.at[loop.moves[k].place] += loop.moves[k].bytes;
    }
    leave_wide_registers();
  }

  static void add(block_machine& m) {
    constexpr auto w = static_cast<std::size_t>(Width);
    const auto plain = [](auto f) { return reinterpret_cast<void (*)()>(f); };
    m.lanes[w] = static_cast<std::int64_t>(block_lanes<Width>);
    m.run[w] = run;
    const auto forms = [&]<std::size_t... F>(std::index_sequence<F...>) {
      ((m.move.load[F][w] = plain(load_step<block_form(F)>)), ...);
      ((m.move.store[F][w] = plain(store_step<block_form(F)>)), ...);
    };
    forms(std::make_index_sequence<block_forms>{});
    m.move.round[static_cast<std::size_t>(block_form::f16)][w] = plain(round_step<block_form::f16>);
    m.move.round[static_cast<std::size_t>(block_form::bf16)][w] = plain(round_step<block_form::bf16>);
    if constexpr (Width == block_width::narrow) m.move.repeat = plain(repeat_step);
    m.move.stream[w] = plain(stream_step);
    m.move.divide[w] = plain(divide_step);
    m.move.end[w] = plain(end_step);
  }
};

/// The machine of this translation unit's instruction set.
inline block_machine make_block_machine() {
  block_machine m;
  block_moves<block_width::narrow>::add(m);
  block_moves<block_width::wide>::add(m);
  m.fill = [](float* block, float value) {
    for (std::size_t v = 0; v < block_vectors<block_width::wide>; ++v)
      store(block + v * native_lanes<float>, broadcast<float_vec>(value));
  };
  m.fence = [] { stream_fence(); };
  return m;
}

}  // namespace kiln::kernels
