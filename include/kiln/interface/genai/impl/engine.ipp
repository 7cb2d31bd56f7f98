#include <algorithm>
#include <deque>
#include <list>

#include "kiln/interface/genai/impl/handles.hpp"

// A request is its own generator. The caller's handle and the engine both own it.
struct OgaRequest {
  kiln::genai::generator_options options;
  std::shared_ptr<OgaRequest> self;  // what the caller's handle owns
  std::optional<kiln::language::generator> text;
  kiln::language::tokens prompt;  // not appended yet
  std::deque<kiln::language::token> unseen;
  OgaEngine* engine = nullptr;
  bool is_complete = false;
  void* opaque = nullptr;
};
struct OgaEngine {
  kiln::genai::model_ref model;
  std::list<std::shared_ptr<OgaRequest>> all;     // in the order they were added
  std::deque<std::shared_ptr<OgaRequest>> ready;  // with tokens to be handed out
  std::shared_ptr<OgaRequest> handed_out;         // stays as long as the caller may look at it: until the next step
};

namespace kiln::genai {
namespace {

bool is_open(const OgaRequest& r) { return !r.is_complete && (r.text || !r.prompt.empty()); }

// A request takes its next token.
void step(OgaRequest& r) {
  try {
    if (!r.text) r.text.emplace(generator_of(r.options));
    if (!r.prompt.empty()) {
      r.text->append_tokens(r.prompt);
      r.prompt.clear();
    }
    generate(*r.text);
    for (const token t : r.text->next_tokens()) r.unseen.push_back(t);
    r.is_complete = r.text->is_done();
  } catch (...) {
    r.is_complete = true;  // the others go on
    throw;
  }
}

// All open requests take a token; the first error among theirs is thrown once all have.
void step(OgaEngine& e) {
  std::exception_ptr failed;
  for (const auto& r : e.all)
    if (is_open(*r)) try {
        step(*r);
        e.ready.push_back(r);
      } catch (...) {
        if (!failed) failed = std::current_exception();
      }
  if (failed) std::rethrow_exception(failed);
}

void add_prompt(OgaRequest& r, const OgaSequences* given_tokens) {
  const auto& lists = given(given_tokens, "the sequences").lists;
  if (lists.size() != 1) raise(fault::of(errc::invalid_argument, "a request is one sequence", 1, lists.size()));
  if (lists[0].empty()) raise(errc::invalid_argument, "input_ids is empty");
  r.options.model->decoder()->check_tokens(lists[0]);
  r.prompt.insert(r.prompt.end(), lists[0].begin(), lists[0].end());
}

void leave(OgaEngine& e, const OgaRequest* r) {
  const auto is_it = [&](const auto& p) { return p.get() == r; };
  e.ready.erase(std::remove_if(e.ready.begin(), e.ready.end(), is_it), e.ready.end());
  e.all.remove_if(is_it);
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaCreateEngine(OgaModel* model, OgaEngine** out) {
  return made(out, [&] { return new OgaEngine{given(model, "the model").value, {}, {}, {}}; });
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
    return !e.ready.empty() || std::any_of(e.all.begin(), e.all.end(), [](const auto& r) { return is_open(*r); });
  });
}
OgaResult* OgaEngineAddRequest(OgaEngine* engine, OgaRequest* request) {
  return guarded([&] {
    OgaEngine& e = given(engine, "the engine");
    OgaRequest& r = given(request, "the request");
    if (r.engine) raise(kiln::errc::invalid_argument, "a request is added once: found one that an engine has");
    if (r.options.model != e.model)
      raise(kiln::errc::invalid_argument, "a request is of the engine's model: found one of another");
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
    if (o.search.batch_size != 1 || o.search.num_beams != 1)
      raise(kiln::errc::invalid_argument, "a request has batch_size 1 and num_beams 1: found " +
                                              std::to_string(o.search.batch_size) + " and " +
                                              std::to_string(o.search.num_beams));
    const auto r = std::make_shared<OgaRequest>();
    r->options = o;
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
    if (r.text)
      raise(kiln::errc::invalid_argument,
            "tokens are added before a request is run; OgaRequestContinue appends those of a further turn");
    add_prompt(r, tokens);
  });
}
OgaResult* OgaRequestContinue(OgaRequest* request, const OgaSequences* tokens) {
  return guarded([&] {
    OgaRequest& r = given(request, "the request");
    if (!r.text || !r.is_complete)
      raise(kiln::errc::invalid_argument, "a further turn follows one that is complete: found one that is not");
    add_prompt(r, tokens);
    r.is_complete = false;
  });
}
OgaResult* OgaRequestSetOpaqueData(OgaRequest* request, void* opaque_data) {
  return guarded([&] { given(request, "the request").opaque = opaque_data; });
}
OgaResult* OgaRequestGetOpaqueData(OgaRequest* request, void** opaque_data) {
  return told(opaque_data, [&] { return given(request, "the request").opaque; });
}
OgaResult* OgaRequestHasUnseenTokens(const OgaRequest* request, bool* out) {
  return told(out, [&] { return !given(request, "the request").unseen.empty(); });
}
OgaResult* OgaRequestGetUnseenToken(OgaRequest* request, int32_t* out) {
  return told(out, [&] {
    auto& unseen = given(request, "the request").unseen;
    if (unseen.empty()) raise(kiln::errc::not_found, "the request has no token that was not asked for");
    const token t = unseen.front();
    unseen.pop_front();
    return t;
  });
}
OgaResult* OgaRequestIsDone(const OgaRequest* request, bool* out) {
  return told(out, [&] { return given(request, "the request").is_complete; });
}
OgaResult* OgaRequestIsTurnComplete(const OgaRequest* request, bool* out) { return OgaRequestIsDone(request, out); }
