#pragma once
#include "kiln/core/object.hpp"
#include "kiln/runtime/impl/segment/device_place.hpp"

namespace kiln::detail {

/// Who runs a host step, and with what.
struct caller {
  const host_step& step;
  const known_symbols& symbols;
  std::span<run_memory> inner;
  const run_options& options;
  std::span<const argument> wanted;
  thread_pool& pool;
  const device_place& place;

  bool stopped() const { return options.cancel && options.cancel->load(std::memory_order_relaxed); }
  [[noreturn]] static void stop(std::int64_t iteration) {
    raise(errc::canceled, "the run was stopped before iteration " + std::to_string(iteration) + " of a loop");
  }
  /// Outputs that have memory are written there.
  void run_body(std::size_t k, std::span<const argument> in, std::span<argument> out, void* stream = nullptr) const {
    run_options plain;
    plain.cancel = options.cancel;
    plain.stream = stream;
    step.bodies[k]->run(inner[k], in, out, plain, symbols.list);
  }
  const shape& made_by(std::size_t body, std::size_t output) const {
    return step.bodies[body]->ports.outputs[output].type;
  }
  /// Of a loop's body, by the loop's results.
  const shape& made_each_time(std::size_t result) const { return made_by(0, result + (step.loop.asks ? 1 : 0)); }
  /// The memory that the caller has for a result of this shape, or nothing.
  argument memory_for(std::size_t result, const shape& s) const {
    return result < wanted.size() && has_fixed_bytes(s) && wanted[result].get_shape().type == s.type &&
                   wanted[result].get_shape().lens == s.lens
               ? wanted[result]
               : argument();
  }
  /// Whether values of this shape always take the same number of bytes, and some.
  static bool has_fixed_bytes(const shape& s) {
    return s.is_constant() && !is_object(s.type) && bits_of(s.type) >= 8 && s.elements().value() > 0;
  }
};

}  // namespace kiln::detail
