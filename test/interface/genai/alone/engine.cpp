// Engines of GenAI's C++ interface: many requests side by side, each as alone.
#include <set>

#include "client.hpp"

namespace kiln::genai::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<OgaSequences> list_of(const ids& tokens) {
  auto out = OgaSequences::Create();
  out->Append(tokens);
  return out;
}
std::unique_ptr<OgaRequest> request_of(const golden& g) {
  auto out = OgaRequest::Create(*params_of(g.all.size()));
  out->AddTokens(*list_of(g.prompt_ids));
  return out;
}

TEST(engine, requests_are_each_as_alone) {
  const auto& all = goldens();
  const auto engine = OgaEngine::Create(scripture());
  EXPECT_FALSE(engine->HasPendingRequests());
  std::vector<std::unique_ptr<OgaRequest>> requests;
  std::vector<ids> made;
  const auto add = [&](std::size_t k) {
    requests.push_back(request_of(all[k]));
    made.push_back(all[k].prompt_ids);
    requests[k]->SetOpaqueData(&made[k]);
    engine->Add(*requests[k]);
  };
  made.reserve(all.size());
  for (std::size_t k = 0; k + 1 < all.size(); ++k) add(k);
  std::size_t steps = 0;
  while (engine->HasPendingRequests()) {
    std::set<const OgaRequest*> seen;  // in each round, every open request once
    if (++steps == 5) add(all.size() - 1);
    OgaRequest* const r = engine->Step();
    ASSERT_NE(r, nullptr);
    ASSERT_TRUE(r->HasUnseenTokens());
    auto& text = *static_cast<ids*>(r->GetOpaqueData());
    while (r->HasUnseenTokens()) text.push_back(r->GetUnseenToken());
    EXPECT_EQ(r->IsDone(), r->IsTurnComplete());
    if (r->IsDone()) engine->Remove(*r);
  }
  for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(made[k], all[k].all) << k;
  EXPECT_EQ(engine->Step(), nullptr);
}

TEST(engine, every_open_request_makes_one_token_a_round) {
  const auto& all = goldens();
  const auto engine = OgaEngine::Create(scripture());
  std::vector<std::unique_ptr<OgaRequest>> requests;
  for (std::size_t k = 0; k < 3; ++k) requests.push_back(request_of(all[k])), engine->Add(*requests[k]);
  for (int round = 0; round < 3; ++round)
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(engine->Step(), requests[k].get());
      requests[k]->GetUnseenToken();
      EXPECT_FALSE(requests[k]->HasUnseenTokens());
    }
  requests[1].reset();  // the engine keeps it until it is done
  EXPECT_EQ(engine->Step(), requests[0].get());
}

TEST(engine, a_turn_follows_another) {
  const golden& g = goldens()[3];
  const auto engine = OgaEngine::Create(scripture());
  const auto params = params_of(60);
  const auto request = OgaRequest::Create(*params);
  EXPECT_THAT(message_of([&] { request->Continue(*list_of({5})); }), HasSubstr("complete"));
  request->AddTokens(*list_of({g.prompt_ids[0]}));
  request->AddTokens(*list_of(ids(g.prompt_ids.begin() + 1, g.prompt_ids.end())));
  engine->Add(*request);
  const auto run = [&] {
    ids out;
    while (engine->HasPendingRequests()) {
      engine->Step();
      while (request->HasUnseenTokens()) out.push_back(request->GetUnseenToken());
    }
    return out;
  };
  const ids first = run();
  EXPECT_TRUE(request->IsTurnComplete());
  EXPECT_THAT(message_of([&] { request->AddTokens(*list_of({5})); }), HasSubstr("OgaRequestContinue"));
  // the same conversation by a generator
  const auto own = OgaGenerator::Create(scripture(), *params);
  own->AppendTokens(g.prompt_ids);
  const ids turn = run_to_end(*own);
  EXPECT_EQ(first, ids(turn.begin() + static_cast<std::ptrdiff_t>(g.prompt_ids.size()), turn.end()));
  ASSERT_LT(turn.size(), 55u);
  own->AppendTokens(goldens()[0].prompt_ids);
  const ids whole = run_to_end(*own);
  request->Continue(*list_of(goldens()[0].prompt_ids));
  EXPECT_FALSE(request->IsTurnComplete());
  EXPECT_EQ(run(), ids(whole.begin() + static_cast<std::ptrdiff_t>(turn.size() + goldens()[0].prompt_ids.size()),
                       whole.end()));
}

TEST(engine, a_prompt_that_is_too_long_leaves_the_request_as_it_was) {
  const golden& g = goldens()[0];
  const auto engine = OgaEngine::Create(scripture());
  const auto good = request_of(g), bad = OgaRequest::Create(*params_of(3));
  engine->Add(*bad), engine->Add(*good);
  EXPECT_THAT(message_of([&] { bad->AddTokens(*list_of(g.prompt_ids)); }), HasSubstr("exceeds max length (3)"));
  ids made = g.prompt_ids;
  while (engine->HasPendingRequests()) {
    ASSERT_EQ(engine->Step(), good.get());
    made.push_back(good->GetUnseenToken());
  }
  EXPECT_EQ(made, g.all);
}

TEST(engine, requests_are_guided_with_forced_tokens_and_guess_ahead) {
  const auto params = params_of(60);
  params->SetGuidance("regex", " Jerusalem and Babylon, (yea|nay)!", true);
  params->SetSpeculativeNumber("ngram_size", 3);
  const auto engine = OgaEngine::Create(scripture());
  const auto request = OgaRequest::Create(*params);
  request->AddTokens(*list_of(goldens()[0].prompt_ids));
  engine->Add(*request);
  ids made;
  std::size_t steps = 0;
  for (; engine->HasPendingRequests(); ++steps) {
    engine->Step();
    while (request->HasUnseenTokens()) made.push_back(request->GetUnseenToken());
  }
  EXPECT_LT(steps + 5, made.size());
  EXPECT_TRUE(request->IsDone());
}

TEST(engine, requests_outlive_their_engine) {
  auto engine = OgaEngine::Create(scripture());
  const auto request = request_of(goldens()[0]);
  engine->Add(*request);
  EXPECT_EQ(engine->Step(), request.get());
  engine.reset();
  EXPECT_TRUE(request->HasUnseenTokens());
  EXPECT_FALSE(request->IsDone());
  engine = OgaEngine::Create(scripture());
  engine->Add(*request);
  ids made = goldens()[0].prompt_ids;
  do
    while (request->HasUnseenTokens()) made.push_back(request->GetUnseenToken());
  while (engine->Step());
  EXPECT_EQ(made, goldens()[0].all);
}

TEST(engine, says_what_is_wrong) {
  const auto engine = OgaEngine::Create(scripture()), second = OgaEngine::Create(scripture());
  const auto params = params_of(20);
  const auto request = OgaRequest::Create(*params);
  EXPECT_THAT(message_of([&] { request->GetUnseenToken(); }), HasSubstr("no token"));
  EXPECT_THAT(message_of([&] { request->AddTokens(*OgaSequences::Create()); }), HasSubstr("expected 1, found 0"));
  EXPECT_THAT(message_of([&] { request->AddTokens(*list_of({})); }), HasSubstr("input_ids is empty"));
  EXPECT_THAT(message_of([&] { request->AddTokens(*list_of({-3})); }), HasSubstr("-3"));
  EXPECT_THAT(message_of([&] { engine->Remove(*request); }), HasSubstr("not added"));
  engine->Add(*request);
  EXPECT_FALSE(engine->HasPendingRequests());  // it has no prompt
  EXPECT_THAT(message_of([&] { second->Add(*request); }), HasSubstr("added once"));
  EXPECT_THAT(message_of([&] { second->Remove(*request); }), HasSubstr("not added"));
  params->SetSearchOption("num_beams", 2);
  EXPECT_THAT(message_of([&] { OgaRequest::Create(*params); }), HasSubstr("expected num_beams 1, found 2"));
  const auto other = OgaModel::Create(folder.c_str());
  EXPECT_THAT(message_of([&] { OgaEngine::Create(*other)->Add(*OgaRequest::Create(*params_of(9))); }),
              HasSubstr("of another"));
}

}  // namespace
}  // namespace kiln::genai::testing
