#pragma once
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

template <class Module> class stored_gatherer {
 public:
  constexpr stored_gatherer(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto* gather = r_.template get_if<op::gather>({i, 0});
      if (!gather) continue;
      const value_id from = r_[i].inputs[0], indices = r_[i].inputs[1];
      const auto* found = r_.template get_if<op::block_dequantize>(from);
      if (!found) continue;
      op::block_dequantize stored = *found;
      const std::size_t rank = r_.shape_of(from).rank();
      const std::int64_t axis = normal_axis(gather->axis, rank), along = normal_axis(stored.axis, rank);
      // an index has to pick whole blocks and whole bytes
      if (axis == along || (axis == static_cast<std::int64_t>(rank) - 1 && (stored.bits != 8 || stored.extent != 0)))
        continue;
      if (along > axis) stored.axis = along + static_cast<std::int64_t>(r_.shape_of(indices).rank()) - 1;
      small_vector<value_id> picked;
      for (const value_id v : small_vector<value_id>(r_.producer(from).inputs))
        picked.push_back(r_.add(op::gather{axis}, {v, indices}));
      r_.replace({i, 0}, r_.add(stored, std::move(picked)));
      note_.count("gather");
    }
  }

 private:
  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Gathers rows of numbers that are stored in blocks before they are dequantized: a run reads those it needs.
template <class Program> constexpr pass_note gather_stored_numbers(Program& p) {
  return run_on_modules<detail::stored_gatherer>("gather_stored_numbers", p);
}

}  // namespace kiln
