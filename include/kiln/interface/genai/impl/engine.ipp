#include "kiln/interface/genai/impl/handles.hpp"

// The caller's handle and the engine both own a request.
struct OgaRequest : kiln::language::served_request {
  using served_request::served_request;
  kiln::genai::model_ref model;
  std::shared_ptr<OgaRequest> self;  // what the caller's handle owns
  void* opaque = nullptr;
};
struct OgaEngine {
  kiln::genai::model_ref model;
  kiln::language::served_engine value;
  std::shared_ptr<kiln::language::served_request> handed_out;  // stays as long as the caller may look at it: until the
                                                               // next step
};

namespace kiln::genai {
namespace {

const tokens& prompt_of(const OgaSequences* given_tokens) {
  const auto& lists = given(given_tokens, "the sequences").lists;
  if (lists.size() != 1) raise(fault::of(errc::invalid_argument, "a request is one sequence", 1, lists.size()));
  return lists[0];
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaCreateEngine(OgaModel* model, OgaEngine** out) {
  return made(out, [&] {
    const model_ref& m = given(model, "the model").value;
    return new OgaEngine{m, kiln::language::served_engine(m->decoder()), {}};
  });
}
void OgaDestroyEngine(OgaEngine* engine) { delete engine; }
OgaResult* OgaEngineStep(OgaEngine* engine, OgaRequest** request) {
  return made(request, [&]() -> OgaRequest* {
    OgaEngine& e = given(engine, "the engine");
    e.handed_out = e.value.step();
    return static_cast<OgaRequest*>(e.handed_out.get());
  });
}
OgaResult* OgaEngineHasPendingRequests(OgaEngine* engine, bool* out) {
  return told(out, [&] { return given(engine, "the engine").value.has_pending(); });
}
OgaResult* OgaEngineAddRequest(OgaEngine* engine, OgaRequest* request) {
  return guarded([&] { given(engine, "the engine").value.add(given(request, "the request").self); });
}
OgaResult* OgaEngineRemoveRequest(OgaEngine* engine, OgaRequest* request) {
  return guarded([&] { given(engine, "the engine").value.remove(given(request, "the request")); });
}

OgaResult* OgaCreateRequest(OgaGeneratorParams* params, OgaRequest** out) {
  return made(out, [&] {
    const params_value& p = given(params, "the generator's params").value;
    const auto r = std::make_shared<OgaRequest>(p.model->decoder(), p);
    r->model = p.model;
    r->self = r;
    return r.get();
  });
}
void OgaDestroyRequest(OgaRequest* request) {
  if (request) std::shared_ptr<OgaRequest>(std::move(request->self)).reset();
}
OgaResult* OgaRequestAddTokens(OgaRequest* request, const OgaSequences* tokens) {
  return guarded([&] { given(request, "the request").add_prompt(prompt_of(tokens)); });
}
OgaResult* OgaRequestContinue(OgaRequest* request, const OgaSequences* tokens) {
  return guarded([&] { given(request, "the request").continue_with(prompt_of(tokens)); });
}
OgaResult* OgaRequestSetOpaqueData(OgaRequest* request, void* opaque_data) {
  return guarded([&] { given(request, "the request").opaque = opaque_data; });
}
OgaResult* OgaRequestGetOpaqueData(OgaRequest* request, void** opaque_data) {
  return told(opaque_data, [&] { return given(request, "the request").opaque; });
}
OgaResult* OgaRequestHasUnseenTokens(const OgaRequest* request, bool* out) {
  return told(out, [&] { return given(request, "the request").has_unseen(); });
}
OgaResult* OgaRequestGetUnseenToken(OgaRequest* request, int32_t* out) {
  return told(out, [&] { return given(request, "the request").take_unseen(); });
}
OgaResult* OgaRequestIsDone(const OgaRequest* request, bool* out) {
  return told(out, [&] { return given(request, "the request").is_done(); });
}
OgaResult* OgaRequestIsTurnComplete(const OgaRequest* request, bool* out) { return OgaRequestIsDone(request, out); }
