// Adapters and speculative decoding through GenAI's C++ interface, over models that the tests write.
#include <gmock/gmock.h>
#include <ort_genai.h>

#include <filesystem>
#include <fstream>

#include "generate/scripture.hpp"
#include "generate/tiny_llama.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "no error";
}

// A folder with a model that adapters change, and two of them.
struct adaptable_folder : test::temporary_folder {
  adaptable_folder() {
    write("model.onnx", tiny_llama::file());
    write("genai_config.json", R"({"model": {"type": "llama", "context_length": 64, "eos_token_id": 0}})");
    for (const auto& [name, rank, seed] : {std::tuple("a.onnx_adapter", 2, 1u), {"b.onnx_adapter", 4, 9u}}) {
      const auto bytes = adapter_bytes(tiny_llama::update(rank, seed));
      write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
  std::string file(const char* name) const { return *this / name; }
};

const tokens prompt{3, 1, 4, 1, 5, 9, 2, 6};

std::unique_ptr<OgaGenerator> started(const OgaModel& m, OgaAdapters* adapters = nullptr, const char* name = nullptr) {
  const auto params = OgaGeneratorParams::Create(m);
  params->SetSearchOption("max_length", 30);
  params->SetSearchOption("min_length", 30);
  auto g = OgaGenerator::Create(m, *params);
  if (adapters) g->SetActiveAdapter(*adapters, name);
  return g;
}
tokens finished(OgaGenerator& g) {
  g.AppendTokens(prompt);
  while (!g.IsDone()) g.GenerateNextToken();
  const auto all = g.GetSequence(0);
  return {all.begin(), all.end()};
}
// The model with an adapter's updates in its weights.
tokens merged_model(std::int64_t rank, unsigned seed) {
  search_options o;
  o.max_length = o.min_length = 30;
  config c = tiny_llama::settings(tiny_llama::file(tiny_llama::update(rank, seed)));
  c.eos_token_id = {0};
  generator g(language_model::load(c, eigen_target()), o);
  g.append_tokens(prompt);
  return run_to_end(g);
}

TEST(genai_adapters, each_generator_has_its_own) {
  const adaptable_folder folder;
  auto model = OgaModel::Create(folder.path().c_str());
  auto adapters = OgaAdapters::Create(*model);
  adapters->LoadAdapter(folder.file("a.onnx_adapter").c_str(), "a");
  adapters->LoadAdapter(folder.file("b.onnx_adapter").c_str(), "b");
  const auto with_a = started(*model, adapters.get(), "a"), with_b = started(*model, adapters.get(), "b");
  const auto plain = started(*model);
  EXPECT_THAT(message_of([&] { started(*model, adapters.get(), "c"); }), HasSubstr("not found: c"));
  EXPECT_THAT(message_of([&] { adapters->UnloadAdapter("a"); }), HasSubstr("in use"));
  EXPECT_THAT(message_of([&] { adapters->UnloadAdapter("c"); }), HasSubstr("not found: c"));
  EXPECT_THAT(message_of([&] { adapters->LoadAdapter("/nowhere", "d"); }), HasSubstr("/nowhere"));
  adapters.reset(), model.reset();  // generators keep what they use
  const tokens a = finished(*with_a), b = finished(*with_b), none = finished(*plain);
  EXPECT_EQ(a, merged_model(2, 1));
  EXPECT_EQ(b, merged_model(4, 9));
  EXPECT_NE(a, b);
  EXPECT_NE(a, none);
}

TEST(genai_adapters, are_let_go_with_their_generators) {
  const adaptable_folder folder;
  const auto model = OgaModel::Create(folder.path().c_str());
  const auto adapters = OgaAdapters::Create(*model);
  adapters->LoadAdapter(folder.file("a.onnx_adapter").c_str(), "a");
  started(*model, adapters.get(), "a").reset();
  adapters->UnloadAdapter("a");
  EXPECT_THAT(message_of([&] { adapters->UnloadAdapter("a"); }), HasSubstr("not found: a"));
}

TEST(genai_adapters, inputs_may_be_given_one_by_one) {
  const adaptable_folder folder;
  const auto model = OgaModel::Create(folder.path().c_str());
  const auto adapters = OgaAdapters::Create(*model);
  adapters->LoadAdapter(folder.file("a.onnx_adapter").c_str(), "a");
  const auto whole = started(*model, adapters.get(), "a"), single = started(*model), named = started(*model);
  adapter update = tiny_llama::update(2, 1);
  const auto inputs = OgaNamedTensors::Create();
  for (auto& [name, value] : update.parameters) {
    std::vector<int64_t> extents;
    for (const auto& n : value.get_shape().lens) extents.push_back(n.value());
    const auto tensor = OgaTensor::Create(value.data(), extents, OgaElementType_float32);
    single->SetModelInput(name.c_str(), *tensor);
    inputs->Set(name.c_str(), *tensor);
  }
  named->SetInputs(*inputs);
  const tokens wanted = finished(*whole);
  EXPECT_EQ(finished(*single), wanted);
  EXPECT_EQ(finished(*named), wanted);
  const int64_t three[] = {3};
  const auto small = OgaTensor::Create(static_cast<float*>(nullptr), three);
  const auto own = started(*model);
  EXPECT_THAT(message_of([&] { own->SetModelInput("pixel_values", *small); }), HasSubstr("'pixel_values'"));
  own->SetModelInput("head.bias", *small);
  EXPECT_THAT(message_of([&] { own->AppendTokens(prompt); }), HasSubstr("head.bias"));
}

// Inputs that are given again replace those of before, however often; the others stay.
TEST(genai_adapters, inputs_are_replaced) {
  const adaptable_folder folder;
  const auto model = OgaModel::Create(folder.path().c_str());
  const auto own = started(*model), wanted = started(*model);
  const auto give = [](OgaGenerator& to, const adapter& from) {
    for (const auto& [name, value] : from.parameters) {
      std::vector<int64_t> extents;
      for (const auto& n : value.get_shape().lens) extents.push_back(n.value());
      argument copy = value.copy();
      to.SetModelInput(name.c_str(), *OgaTensor::Create(copy.data(), extents, OgaElementType_float32));
    }
  };
  give(*own, tiny_llama::update(2, 1));
  own->AppendTokens(prompt);
  own->GenerateNextToken();
  own->RewindTo(0);
  give(*own, tiny_llama::update(4, 9));  // of another rank: all that were given go
  give(*wanted, tiny_llama::update(4, 9));
  const tokens made = finished(*wanted);
  EXPECT_EQ(finished(*own), made);
  EXPECT_NE(finished(*started(*model)), made);
}

// A request whose guide finds no token of the vocabulary fails alone, and says so once.
TEST(genai_engine, a_request_that_fails_leaves_the_others) {
  const adaptable_folder folder;
  folder.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"e": 0, "a": 1, "b": 2}, "merges": []}})");
  const auto model = OgaModel::Create(folder.path().c_str());
  const auto request = [&](const char* pattern) {
    const auto params = OgaGeneratorParams::Create(*model);
    params->SetSearchOption("max_length", 20);
    if (pattern) params->SetGuidance("regex", pattern, true);
    auto out = OgaRequest::Create(*params);
    const auto list = OgaSequences::Create();
    list->Append(prompt);
    out->AddTokens(*list);
    return out;
  };
  const auto engine = OgaEngine::Create(*model);
  const auto bad = request("[ab]z"), good = request(nullptr);
  engine->Add(*bad), engine->Add(*good);
  int failures = 0;
  while (engine->HasPendingRequests()) {
    const std::string message = message_of([&] { engine->Step(); });
    if (message == "no error") continue;
    EXPECT_THAT(message, HasSubstr("no token of the vocabulary may follow"));
    ++failures;
  }
  EXPECT_EQ(failures, 1);
  EXPECT_TRUE(bad->IsDone());
  tokens made;
  while (good->HasUnseenTokens()) made.push_back(good->GetUnseenToken());
  const auto params = OgaGeneratorParams::Create(*model);
  params->SetSearchOption("max_length", 20);
  const auto own = OgaGenerator::Create(*model, *params);
  own->AppendTokens(prompt);
  while (!own->IsDone()) own->GenerateNextToken();
  const auto all = own->GetSequence(0);
  EXPECT_EQ(made, tokens(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()));
}

// A request that its owner destroyed is the engine's alone; it is no request to be added again.
TEST(genai_engine, a_destroyed_request_is_not_added) {
  const auto model = OgaModel::Create(scripture_folder.c_str());
  const auto params = OgaGeneratorParams::Create(*model);
  params->SetSearchOption("max_length", 20);
  auto request = OgaRequest::Create(*params);
  const auto list = OgaSequences::Create();
  list->Append(prompt);
  request->AddTokens(*list);
  const auto engine = OgaEngine::Create(*model), other = OgaEngine::Create(*model);
  engine->Add(*request);
  request.reset();
  OgaRequest* const stepped = engine->Step();
  ASSERT_NE(stepped, nullptr);
  EXPECT_THAT(message_of([&] { other->Add(*stepped); }), HasSubstr("found none"));
  EXPECT_TRUE(stepped->HasUnseenTokens());
}

TEST(genai_speculation, guesses_from_the_text_change_no_text) {
  const auto model = OgaModel::Create(scripture_folder.c_str());
  const golden g = scripture_golden()[0];
  const auto params = OgaGeneratorParams::Create(*model);
  params->SetSearchOption("max_length", static_cast<double>(g.all.size()));
  params->SetSpeculativeNumber("ngram_size", 3);
  params->SetSpeculativeNumber("max_draft_tokens", 5);
  params->SetSpeculativeBool("cooldown", true);
  EXPECT_EQ(params->GetSpeculativeNumber("max_draft_tokens"), 5);
  EXPECT_TRUE(params->GetSpeculativeBool("cooldown"));
  EXPECT_THAT(message_of([&] { params->SetSpeculativeNumber("luck", 3); }), HasSubstr("'luck'"));
  EXPECT_THAT(message_of([&] { params->GetSpeculativeBool("luck"); }), HasSubstr("'luck'"));
  const auto own = OgaGenerator::Create(*model, *params);
  own->AppendTokens(g.prompt);
  while (!own->IsDone()) own->GenerateNextToken();
  const auto all = own->GetSequence(0);
  EXPECT_EQ(tokens(all.begin(), all.end()), g.all);
  const auto stats = own->GetSpeculativeStats();
  EXPECT_GT(stats->GetCount("draft_tokens_accepted"), 0u);
  EXPECT_LE(stats->GetCount("draft_tokens_accepted"), stats->GetCount("draft_tokens_proposed"));
  EXPECT_GT(stats->GetNumber("acceptance_rate"), 0);
  EXPECT_LE(stats->GetNumber("acceptance_rate"), 1);
  EXPECT_THAT(message_of([&] { stats->GetCount("luck"); }), HasSubstr("'luck'"));
  EXPECT_THAT(message_of([&] { stats->GetBool("rounds"); }), HasSubstr("'rounds'"));
}

}  // namespace
}  // namespace kiln::language::testing
