#include "kiln/config.hpp"
#include "kiln/pass/impl/pass_parts.hpp"
#include "kiln/pass/target_passes.hpp"

namespace kiln {

compile_notes optimise(program& p, const pass_options& options) { return optimise(p, options, {}); }

compile_notes optimise(program& p, const pass_options& options, std::span<const named_pass<program>> forms) {
  small_vector<named_pass<program>> simplify;
  if (options.simplify)
    for (const auto& list : {forms, detail::program_simplifying_passes()})
      for (const named_pass<program>& step : list) simplify.push_back(step);
  pass_lists<program> lists;
  lists.simplify = simplify;
  lists.extra = options.extra;
  if (options.fuse) lists.fuse = detail::program_fusing_passes();
  return run_passes(p, lists, options.verify || KILN_CHECKED, [&](const pass_note& note, const program& after) {
    if (options.observer.call) options.observer.call(options.observer.context, note, after);
  });
}

}  // namespace kiln
