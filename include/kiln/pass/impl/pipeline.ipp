#include "kiln/config.hpp"
#include "kiln/pass/impl/pass_parts.hpp"

namespace kiln {

compile_notes optimise(program& p, const pass_options& options) {
  pass_lists<program> lists;
  if (options.simplify) lists.simplify = detail::program_simplifying_passes();
  lists.extra = options.extra;
  if (options.fuse) lists.fuse = detail::program_fusing_passes();
  return run_passes(p, lists, options.verify || KILN_CHECKED, [&](const pass_note& note, const program& after) {
    if (options.observer.call) options.observer.call(options.observer.context, note, after);
  });
}

}  // namespace kiln
