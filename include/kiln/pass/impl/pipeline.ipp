#include "kiln/config.hpp"
#include "kiln/pass/passes.hpp"

namespace kiln {

compile_notes optimise(program& p, const pass_options& options) {
  pass_options o = options;
  o.verify = o.verify || KILN_CHECKED;
  return optimise_graph(p, o, std::span<const named_pass<program>>(options.extra),
                        [&](const pass_note& note, const program& after) {
                          if (o.observer.call) o.observer.call(o.observer.context, note, after);
                        });
}

}  // namespace kiln
