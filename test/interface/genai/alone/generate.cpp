// Texts of the trained model through GenAI's C++ interface: what PyTorch continued, however the tokens come in.
#include <thread>

#include "client.hpp"

namespace kiln::genai::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(generate, continues_as_pytorch_does_token_by_token) {
  const auto tokenizer = OgaTokenizer::Create(scripture());
  for (const golden& g : goldens()) {
    const auto own = OgaGenerator::Create(scripture(), *params_of(g.all.size()));
    const auto prompt = OgaSequences::Create();
    tokenizer->Encode(g.prompt.c_str(), *prompt);
    ASSERT_THAT(ids(prompt->Get(0).begin(), prompt->Get(0).end()), g.prompt_ids);
    const auto stream = OgaTokenizerStream::Create(*tokenizer);
    std::string pieces;
    for (const int32_t t : prompt->Get(0)) pieces += stream->Decode(t);
    own->AppendTokenSequences(*prompt);
    EXPECT_EQ(own->TokenCount(), g.prompt_ids.size());
    while (!own->IsDone()) {
      own->GenerateNextToken();
      ASSERT_EQ(own->GetNextTokens().size(), 1u);
      EXPECT_EQ(own->GetNextTokens()[0], own->GetSequence(0).back());
      pieces += stream->Decode(own->GetNextTokens()[0]);
    }
    EXPECT_EQ(sequence_of(*own), g.all);
    EXPECT_EQ(std::string(tokenizer->Decode(own->GetSequence(0))), g.text);
    EXPECT_EQ(pieces, g.text);
  }
}

TEST(generate, keeps_what_it_was_made_from) {
  const golden& g = goldens()[0];
  auto model = OgaModel::Create(folder.c_str());
  auto params = OgaGeneratorParams::Create(*model);
  params->SetSearchOption("max_length", static_cast<double>(g.all.size()));
  auto tokenizer = OgaTokenizer::Create(*model);
  const auto stream = OgaTokenizerStream::Create(*tokenizer);
  const auto own = OgaGenerator::Create(*model, *params);
  params->SetSearchOption("max_length", 5);  // it has its own
  model.reset(), params.reset(), tokenizer.reset();
  own->AppendTokens(g.prompt_ids);
  EXPECT_EQ(run_to_end(*own), g.all);
  EXPECT_STREQ(stream->Decode(g.prompt_ids[0]), "In");
}

TEST(generate, sequences_side_by_side_are_each_as_alone) {
  const auto& all = goldens();
  const auto params = params_of(60);
  params->SetSearchOption("batch_size", static_cast<double>(all.size()));
  const auto own = OgaGenerator::Create(scripture(), *params);
  const auto prompts = OgaSequences::Create();
  std::size_t longest = 0;
  for (const golden& g : all) prompts->Append(g.prompt_ids), longest = std::max(longest, g.prompt_ids.size());
  own->AppendTokenSequences(*prompts);
  for (int k = 0; k < 12; ++k) own->GenerateNextToken();
  ASSERT_EQ(own->GetNextTokens().size(), all.size());
  for (std::size_t b = 0; b < all.size(); ++b) {
    ids wanted = all[b].prompt_ids;
    wanted.resize(longest, 0);  // padding
    const auto from = all[b].all.begin() + static_cast<std::ptrdiff_t>(all[b].prompt_ids.size());
    wanted.insert(wanted.end(), from, from + 12);
    EXPECT_EQ(sequence_of(*own, b), wanted) << b;
    EXPECT_EQ(own->GetNextTokens()[b], wanted.back()) << b;
  }
  EXPECT_EQ(own->GetSequenceCount(all.size()), 0u);
  EXPECT_EQ(own->GetSequenceData(all.size()), nullptr);
  EXPECT_THAT(message_of([&] { own->AppendTokenSequences(*prompts); }),
              HasSubstr("AppendTokens can only be called once"));
  own->RewindTo(0);
  own->AppendTokenSequences(*prompts);
  own->GenerateNextToken();
  EXPECT_EQ(own->GetNextTokens()[0], all[0].all[all[0].prompt_ids.size()]);
}

TEST(generate, goes_back_and_on) {
  const golden& g = goldens()[0];
  const auto own = generator_of(g);
  EXPECT_EQ(run_to_end(*own), g.all);
  own->RewindTo(g.prompt_ids.size() + 3);
  EXPECT_FALSE(own->IsDone());
  EXPECT_EQ(own->TokenCount(), g.prompt_ids.size() + 3);
  EXPECT_EQ(run_to_end(*own), g.all);
  EXPECT_THAT(message_of([&] { own->SnapshotState(); }), HasSubstr("SnapshotState: kiln keeps no snapshots"));
  own->RewindTo(0);
  own->AppendTokens(g.prompt_ids);
  EXPECT_EQ(run_to_end(*own), g.all);
  EXPECT_THAT(message_of([&] { own->RewindTo(1000); }), HasSubstr("Cannot rewind to a length (1000)"));
  EXPECT_THAT(message_of([&] { own->RewindTo((std::size_t{1} << 32) + 5); }),
              HasSubstr("Cannot rewind to a length (4294967301)"));
  EXPECT_THAT(message_of([&] { own->GenerateNextToken(); }), HasSubstr("already at max_length (52)"));
}

TEST(generate, shows_scores_and_takes_others) {
  const golden& g = goldens()[1];
  const auto own = generator_of(g);
  const auto scores = own->GetLogits();
  EXPECT_EQ(scores->Type(), OgaElementType_float32);
  EXPECT_THAT(scores->Shape(), ElementsAre(1, 1, 2048));
  auto* const values = static_cast<float*>(scores->Data());
  const std::size_t at = g.prompt_ids.size();
  EXPECT_EQ(std::max_element(values, values + 2048) - values, g.all[at]);
  const auto output = own->GetOutput("logits");
  EXPECT_TRUE(std::equal(values, values + 2048, static_cast<const float*>(output->Data())));
  values[77] = 1e6f;  // a copy: only what is set counts
  own->GenerateNextToken();
  EXPECT_EQ(own->GetNextTokens()[0], g.all[at]);
  own->SetLogits(*scores);
  own->GenerateNextToken();
  EXPECT_EQ(own->GetNextTokens()[0], 77);
  own->RewindTo(at + 1);
  EXPECT_EQ(run_to_end(*own), g.all);
  const int64_t extents[] = {1, 1, 3};
  const auto small = OgaTensor::Create(static_cast<float*>(nullptr), extents);
  EXPECT_THAT(message_of([&] { own->SetLogits(*small); }), HasSubstr("expected f32[1, 1, 2048], found f32[1, 1, 3]"));
  EXPECT_THAT(message_of([&] { own->GetOutput("nothing"); }), HasSubstr("no output 'nothing'"));
  EXPECT_THAT(message_of([&] { own->GetInput("input_ids"); }), HasSubstr("'input_ids'"));
}

TEST(generate, takes_input_ids_as_a_named_tensor) {
  const golden& g = goldens()[2];
  const auto own = OgaGenerator::Create(scripture(), *params_of(g.all.size()));
  std::vector<int64_t> wide(g.prompt_ids.begin(), g.prompt_ids.end());
  const int64_t extents[] = {1, static_cast<int64_t>(wide.size())};
  const auto tensor = OgaTensor::Create(wide.data(), extents);
  const auto inputs = OgaNamedTensors::Create();
  inputs->Set("pixel_values", *tensor);
  EXPECT_THAT(message_of([&] { own->SetInputs(*inputs); }), HasSubstr("'pixel_values'"));
  EXPECT_THAT(message_of([&] { own->SetModelInput("lora_A", *tensor); }), HasSubstr("'lora_A'"));
  inputs->Delete("pixel_values");
  inputs->Set("input_ids", *tensor);
  own->SetInputs(*inputs);
  EXPECT_EQ(run_to_end(*own), g.all);
}

TEST(generate, options_have_their_values_and_bounds) {
  const auto p = OgaGeneratorParams::Create(scripture());
  EXPECT_EQ(p->GetSearchNumber("max_length"), 256);  // of genai_config.json
  EXPECT_FALSE(p->GetSearchBool("do_sample"));
  p->SetSearchOption("temperature", 0.5), p->SetSearchOptionBool("do_sample", true);
  EXPECT_EQ(p->GetSearchNumber("temperature"), 0.5);
  EXPECT_TRUE(p->GetSearchBool("do_sample"));
  p->TryGraphCaptureWithMaxBatchSize(4);
  EXPECT_THAT(message_of([&] { p->SetSearchOption("warmth", 1); }), HasSubstr("'warmth'"));
  EXPECT_THAT(message_of([&] { p->SetSearchOptionBool("max_length", true); }), HasSubstr("max_length"));
  EXPECT_THAT(message_of([&] { p->GetSearchNumber("warmth"); }), HasSubstr("'warmth'"));
  p->SetSearchOption("max_length", 1000);
  EXPECT_THAT(message_of([&] { OgaGenerator::Create(scripture(), *p); }), HasSubstr("max_length"));
  p->SetSearchOption("max_length", 20);
  const auto own = OgaGenerator::Create(scripture(), *p);
  EXPECT_THAT(message_of([&] { own->AppendTokens(ids(30, 1)); }),
              HasSubstr("input_ids size (30) + current sequence length (0) exceeds max length (20)"));
  EXPECT_THAT(message_of([&] { own->AppendTokens(ids()); }), HasSubstr("input_ids is empty"));
  EXPECT_THAT(message_of([&] { own->AppendTokens(ids{5000}); }), HasSubstr("5000"));
  EXPECT_THAT(message_of([&] { own->GenerateNextToken(); }), HasSubstr("before any tokens"));
  const auto other = OgaModel::Create(folder.c_str());
  EXPECT_THAT(message_of([&] { OgaGenerator::Create(*other, *p); }), HasSubstr("those of another"));
}

TEST(generate, seeds_and_beams_repeat) {
  const golden& g = goldens()[1];
  std::vector<ids> drawn;
  for (int k = 0; k < 2; ++k) {
    const auto p = params_of(30);
    p->SetSearchOptionBool("do_sample", true);
    p->SetSearchOption("random_seed", 7), p->SetSearchOption("top_p", 0.9), p->SetSearchOption("top_k", 40);
    const auto own = OgaGenerator::Create(scripture(), *p);
    own->AppendTokens(g.prompt_ids);
    drawn.push_back(run_to_end(*own));
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_NE(drawn[0], ids(g.all.begin(), g.all.begin() + 30));
  const auto p = params_of(20);
  p->SetSearchOption("num_beams", 4), p->SetSearchOption("num_return_sequences", 2);
  const auto own = OgaGenerator::Create(scripture(), *p), again = OgaGenerator::Create(scripture(), *p);
  own->AppendTokens(g.prompt_ids), again->AppendTokens(g.prompt_ids);
  const ids first = run_to_end(*own), second = sequence_of(*own, 1);
  EXPECT_EQ(run_to_end(*again), first);
  EXPECT_NE(first, second);
  for (const ids& one : {first, second}) {
    ASSERT_GT(one.size(), g.prompt_ids.size());
    EXPECT_EQ(ids(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(g.prompt_ids.size())), g.prompt_ids);
  }
  EXPECT_EQ(own->GetSequenceCount(2), 0u);
}

TEST(generate, guidance_keeps_to_its_language) {
  const auto tokenizer = OgaTokenizer::Create(scripture());
  const auto p = params_of(60);
  p->SetGuidance("regex", "(David|Saul) went [0-9]{3}\\.");
  const auto own = OgaGenerator::Create(scripture(), *p);
  const ids prompt = goldens()[0].prompt_ids;
  own->AppendTokens(prompt);
  const ids all = run_to_end(*own);
  const std::string made = std::string(tokenizer->Decode(all.data() + prompt.size(), all.size() - prompt.size()));
  EXPECT_THAT(made, ::testing::MatchesRegex("(David|Saul) went [0-9][0-9][0-9]\\."));
  EXPECT_THAT(message_of([&] { p->SetGuidance("regex", "(a"); }), HasSubstr("position 2"));
  EXPECT_THAT(message_of([&] { p->SetGuidance("json_schema", "{\"type\": 3}"); }), HasSubstr("type"));
  EXPECT_THAT(message_of([&] { p->SetGuidance("poem", "a"); }), HasSubstr("'poem'"));
  p->SetGuidance("lark_grammar", "start: \"Behold, the LORD \" /[a-z]{4}/ \".\"");
  std::vector<ids> texts;
  for (const bool forced : {false, true}) {
    if (forced) p->SetGuidance("regex", "Behold, the LORD [a-z]{4}\\.", true);
    const auto guided = OgaGenerator::Create(scripture(), *p);
    guided->AppendTokens(prompt);
    std::size_t steps = 0;
    for (; !guided->IsDone(); ++steps) guided->GenerateNextToken();
    texts.push_back(sequence_of(*guided));
    EXPECT_EQ(steps < texts.back().size() - prompt.size(), forced);  // steps of several tokens
    EXPECT_THAT(std::string(tokenizer->Decode(texts.back())), HasSubstr("Behold, the LORD "));
  }
  p->SetGuidance("", "");
  const auto free = OgaGenerator::Create(scripture(), *p);
  free->AppendTokens(prompt);
  EXPECT_EQ(run_to_end(*free)[prompt.size()], goldens()[0].all[prompt.size()]);
}

TEST(generate, a_terminated_session_can_be_taken_up_again) {
  const golden& g = goldens()[0];
  const auto own = generator_of(g);
  own->GenerateNextToken();
  std::thread([&] { own->SetRuntimeOption("terminate_session", "1"); }).join();
  EXPECT_TRUE(own->IsSessionTerminated());
  EXPECT_FALSE(own->IsDone());
  EXPECT_THAT(message_of([&] { own->GenerateNextToken(); }), HasSubstr("session is terminated"));
  EXPECT_THAT(message_of([&] { own->AppendTokens(g.prompt_ids); }), HasSubstr("session is terminated"));
  own->RewindTo(g.prompt_ids.size());
  own->SetRuntimeOption("terminate_session", "0");
  EXPECT_FALSE(own->IsSessionTerminated());
  EXPECT_EQ(run_to_end(*own), g.all);
  EXPECT_THAT(message_of([&] { own->SetRuntimeOption("terminate_session", "no"); }), HasSubstr("found 'no'"));
  EXPECT_THAT(message_of([&] { own->SetRuntimeOption("pause", "1"); }), HasSubstr("'pause'"));
}

TEST(generate, threads_have_generators_of_one_model) {
  const auto& all = goldens();
  std::vector<ids> made(all.size());
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < all.size(); ++k)
    threads.emplace_back([&, k] { made[k] = run_to_end(*generator_of(all[k])); });
  for (std::thread& t : threads) t.join();
  for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(made[k], all[k].all) << k;
}

// Pages of memory that the process has.
long resident_pages() {
  long size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident;
}

TEST(generate, a_thousand_generators_leave_nothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  const ids prompt = goldens()[0].prompt_ids;
  const auto params = params_of(256);
  const auto round = [&] {
    const auto own = OgaGenerator::Create(scripture(), *params);
    own->AppendTokens(prompt);
    own->GenerateNextToken();
    own->GetLogits();
  };
  for (int k = 0; k < 50; ++k) round();
  const long before = resident_pages();
  for (int k = 0; k < 1000; ++k) round();
  // each has about 100 KiB of caches and scores: three that stayed would be more
  EXPECT_LE(resident_pages() - before, 64);
}

}  // namespace
}  // namespace kiln::genai::testing
