#pragma once
#include "kiln/generate/engine.hpp"
#include "kiln/text/guidance/guide.hpp"

namespace kiln::language {

/// A rule for `generator::set_rule` that keeps what each row appends to its sequence to what a guide allows. A row's
/// text begins after the tokens that the caller appended last: each turn of a conversation has a text of its own; a
/// single token that is appended counts as chosen where the guide allows it.
/// Rewinding goes back with it, and so do beams that change places. The rule throws `error` (`not_found`) where the
/// vocabulary has no token that may follow. Copies share their rows: a rule is for one generator.
logits_rule guided_by(guide g);

/// Guides a generator: `guided_by` as its rule. With `forced_tokens`, those that the guide leaves no choice for
/// (`guide:: forced`) are appended with the token before them, without a run of the model in between; for one sequence
/// only.
void set_guidance(generator& of, guide g, bool forced_tokens = false);
/// The same for a request of an engine.
void set_guidance(request& of, guide g, bool forced_tokens = false);

}  // namespace kiln::language
