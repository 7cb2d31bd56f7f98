#include <algorithm>

#include "kiln/config.hpp"
#include "kiln/pass/impl/pass_lists.hpp"

namespace kiln {

compile_notes optimize(program& p, const pass_options& options, const target_passes& own) {
  small_vector<named_pass<program>> simplify;
  if (options.simplify) {
    const auto* const expansion = detail::program_expansion(p);
    const auto is_own = [&](const named_pass<program>& step) { return expansion && step.name == expansion->name; };
    if (expansion && std::none_of(own.forms.begin(), own.forms.end(), is_own)) simplify.push_back(*expansion);
    for (const auto& list : {own.forms, detail::program_simplifying_passes()})
      for (const named_pass<program>& step : list) simplify.push_back(step);
  }
  pass_lists<program> lists;
  lists.simplify = simplify;
  lists.extra = options.extra;
  small_vector<named_pass<program>> fuse;
  if (options.fuse)
    for (const auto& list : {detail::program_fusing_passes(), own.fuse})
      for (const named_pass<program>& step : list) fuse.push_back(step);
  lists.fuse = fuse;
  return run_passes(p, lists, options.verify || KILN_CHECKED, [&](const pass_note& note, const program& after) {
    if (options.observer.call) options.observer.call(options.observer.context, note, after);
  });
}

}  // namespace kiln
