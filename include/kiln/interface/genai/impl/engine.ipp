#include "kiln/generate/engine.hpp"

#include <algorithm>
#include <deque>

#include "kiln/generate/guidance.hpp"
#include "kiln/interface/genai/impl/handles.hpp"

// The caller's handle and the engine both own a request.
struct OgaRequest {
  kiln::genai::model_ref model;
  std::shared_ptr<kiln::language::request> value;
  std::shared_ptr<OgaRequest> self;  // what the caller's handle owns
  bool is_begun = false;             // has tokens that were made
  OgaEngine* engine = nullptr;
  void* opaque = nullptr;
};
struct OgaEngine {
  kiln::genai::model_ref model;
  kiln::language::engine value;
  std::vector<std::shared_ptr<OgaRequest>> all;
  std::deque<std::shared_ptr<OgaRequest>> ready;  // with tokens to be handed out
  std::shared_ptr<OgaRequest> handed_out;         // stays as long as the caller may look at it: until the next step
};

namespace kiln::genai {
namespace {

// All open requests take a token, or run a piece of their prompts; the first failure of one of them is thrown once all
// have.
void step(OgaEngine& e) {
  std::string failed;
  while (e.ready.empty() && failed.empty() && e.value.has_pending())
    for (const auto& stepped : e.value.step()) {
      const auto found = std::find_if(e.all.begin(), e.all.end(), [&](const auto& r) { return r->value == stepped; });
      (*found)->is_begun = true;
      if (!stepped->failure().empty()) {
        if (failed.empty()) failed = stepped->failure();
        continue;
      }
      e.ready.push_back(*found);
    }
  if (!failed.empty()) raise(errc::invalid_argument, failed);
}

void add_prompt(OgaRequest& r, const OgaSequences* given_tokens) {
  const auto& lists = given(given_tokens, "the sequences").lists;
  if (lists.size() != 1) raise(fault::of(errc::invalid_argument, "a request is one sequence", 1, lists.size()));
  r.value->add_tokens(lists[0]);
}

void leave(OgaEngine& e, const OgaRequest* r) {
  const auto is_it = [&](const auto& p) { return p.get() == r; };
  e.value.remove(*r->value);
  std::erase_if(e.ready, is_it);
  std::erase_if(e.all, is_it);
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaCreateEngine(OgaModel* model, OgaEngine** out) {
  return made(out, [&] {
    const model_ref& m = given(model, "the model").value;
    return new OgaEngine{m, kiln::language::engine(m->decoder()), {}, {}, {}};
  });
}
void OgaDestroyEngine(OgaEngine* engine) {
  if (engine)
    for (const auto& r : engine->all) r->engine = nullptr;
  delete engine;
}
OgaResult* OgaEngineStep(OgaEngine* engine, OgaRequest** request) {
  return made(request, [&]() -> OgaRequest* {
    OgaEngine& e = given(engine, "the engine");
    if (e.ready.empty()) step(e);
    e.handed_out.reset();
    if (e.ready.empty()) return nullptr;
    e.handed_out = std::move(e.ready.front());
    e.ready.pop_front();
    return e.handed_out.get();
  });
}
OgaResult* OgaEngineHasPendingRequests(OgaEngine* engine, bool* out) {
  return told(out, [&] {
    const OgaEngine& e = given(engine, "the engine");
    return !e.ready.empty() || e.value.has_pending();
  });
}
OgaResult* OgaEngineAddRequest(OgaEngine* engine, OgaRequest* request) {
  return guarded([&] {
    OgaEngine& e = given(engine, "the engine");
    OgaRequest& r = given(request, "the request");
    if (r.engine) raise(kiln::errc::invalid_argument, "a request is added once: found one that an engine has");
    if (r.model != e.model)
      raise(kiln::errc::invalid_argument, "a request is of the engine's model: found one of another");
    e.value.add(r.value);
    e.all.push_back(r.self);
    r.engine = &e;
  });
}
OgaResult* OgaEngineRemoveRequest(OgaEngine* engine, OgaRequest* request) {
  return guarded([&] {
    OgaEngine& e = given(engine, "the engine");
    OgaRequest& r = given(request, "the request");
    if (r.engine != &e)
      raise(kiln::errc::invalid_argument, "a request is removed from its engine: found one that was not added to it");
    r.engine = nullptr;
    leave(e, &r);
  });
}

OgaResult* OgaCreateRequest(OgaGeneratorParams* params, OgaRequest** out) {
  return made(out, [&] {
    const generator_options& o = given(params, "the generator's params").value;
    if (o.forced_tokens)
      raise(kiln::errc::unsupported,
            "not supported: forced tokens (enable_ff_tokens) of a request; a generator has them");
    const auto r = std::make_shared<OgaRequest>();
    r->model = o.model;
    r->value = std::make_shared<kiln::language::request>(o.model->decoder(), o.search);
    if (o.guide) r->value->set_rule(kiln::language::guided_by(*o.guide));
    r->self = r;
    return r.get();
  });
}
void OgaDestroyRequest(OgaRequest* request) {
  if (request) std::shared_ptr<OgaRequest>(std::move(request->self)).reset();
}
OgaResult* OgaRequestAddTokens(OgaRequest* request, const OgaSequences* tokens) {
  return guarded([&] {
    OgaRequest& r = given(request, "the request");
    if (r.is_begun)
      raise(kiln::errc::invalid_argument,
            "tokens are added before a request is run; OgaRequestContinue appends those of a further turn");
    add_prompt(r, tokens);
  });
}
OgaResult* OgaRequestContinue(OgaRequest* request, const OgaSequences* tokens) {
  return guarded([&] {
    OgaRequest& r = given(request, "the request");
    if (!r.is_begun || !r.value->is_turn_complete())
      raise(kiln::errc::invalid_argument, "a further turn follows one that is complete: found one that is not");
    add_prompt(r, tokens);
  });
}
OgaResult* OgaRequestSetOpaqueData(OgaRequest* request, void* opaque_data) {
  return guarded([&] { given(request, "the request").opaque = opaque_data; });
}
OgaResult* OgaRequestGetOpaqueData(OgaRequest* request, void** opaque_data) {
  return told(opaque_data, [&] { return given(request, "the request").opaque; });
}
OgaResult* OgaRequestHasUnseenTokens(const OgaRequest* request, bool* out) {
  return told(out, [&] { return given(request, "the request").value->has_unseen(); });
}
OgaResult* OgaRequestGetUnseenToken(OgaRequest* request, int32_t* out) {
  return told(out, [&] { return given(request, "the request").value->take_unseen(); });
}
OgaResult* OgaRequestIsDone(const OgaRequest* request, bool* out) {
  return told(out, [&] {
    const OgaRequest& r = given(request, "the request");
    return r.value->is_turn_complete() && !r.value->sequence().empty();
  });
}
OgaResult* OgaRequestIsTurnComplete(const OgaRequest* request, bool* out) { return OgaRequestIsDone(request, out); }
