// Configurations, models, tokenizers, lists, tensors and messages of GenAI's C++ interface.
#include <filesystem>

#include "client.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::genai::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// The trained model's folder without its model: with configuration and tokenizer.
struct bare_folder {
  test::temporary_folder temporary;
  fs::path path = temporary.path();
  bare_folder() {
    for (const char* file : {"genai_config.json", "tokenizer.json"})
      fs::copy_file(fs::path(folder) / file, path / file);
  }
};

TEST(model, says_what_it_is) {
  EXPECT_STREQ(scripture().GetType(), "llama");
  EXPECT_STREQ(scripture().GetDeviceType(), "CPU");
  const auto settings = OgaRuntimeSettings::Create();
  settings->SetHandle("anything", nullptr);
  int handle = 0;
  EXPECT_THAT(message_of([&] { settings->SetHandle("dawnProcTable", &handle); }), HasSubstr("'dawnProcTable'"));
  EXPECT_THAT(message_of([&] { OgaModel::Create("/nowhere", *settings); }),
              HasSubstr("genai_config.json in '/nowhere'"));
}

TEST(model, comes_from_memory) {
  const bare_folder bare;
  const auto config = OgaConfig::Create(bare.path.c_str());
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("model.onnx"));
  std::ifstream file(folder + "/model.onnx", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  config->AddModelData("model.onnx", bytes.data(), bytes.size());
  const auto model = OgaModel::Create(*config);
  const auto params = OgaGeneratorParams::Create(*model);
  params->SetSearchOption("max_length", 18);
  const auto own = OgaGenerator::Create(*model, *params);
  own->AppendTokens(goldens()[3].prompt_ids);
  EXPECT_EQ(run_to_end(*own), goldens()[3].all);
  config->RemoveModelData("model.onnx");
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("model.onnx"));
  EXPECT_THAT(message_of([&] { config->RemoveModelData("model.onnx"); }), HasSubstr("no data of 'model.onnx'"));
  EXPECT_THAT(message_of([&] { config->AddModelData("a", nullptr, 0); }), HasSubstr("'a' is empty"));
}

TEST(model, providers_are_read) {
  const auto config = OgaConfig::Create(folder.c_str());
  config->AppendProvider("cpu");
  config->SetProviderOption("MIGraphX", "device_id", "0");
  config->SetProviderOption("migraphx", "fp16_enable", "0");
  EXPECT_STREQ(OgaModel::Create(*config)->GetDeviceType(), "CPU");
  config->SetProviderOption("MIGraphX", "speed", "10");
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }),
              HasSubstr("'speed' of provider MIGraphX: expected one of"));
  config->ClearProviders();
  config->SetProviderOption("MIGraphX", "int8_enable", "1");
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("'int8_enable'"));
  config->SetProviderOption("MIGraphX", "int8_enable", "maybe");
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("found 'maybe'"));
  config->ClearProviders();
  config->AppendProvider("cuda");
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("provider 'cuda'"));
  config->ClearProviders();
  config->SetDecoderProviderOptionsHardwareDeviceType("MIGraphX", "npu");  // of one that is not there: no effect
  EXPECT_STREQ(OgaModel::Create(*config)->GetDeviceType(), "CPU");
  config->AppendProvider("MIGraphX");
  config->SetDecoderProviderOptionsHardwareDeviceType("MIGraphX", "npu");
  config->SetDecoderProviderOptionsHardwareDeviceId("MIGraphX", 1);
  config->SetDecoderProviderOptionsHardwareVendorId("MIGraphX", 0x1002);
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("found 'npu'"));
  config->ClearDecoderProviderOptionsHardwareDeviceType("MIGraphX");
  config->ClearDecoderProviderOptionsHardwareDeviceId("MIGraphX");
  config->ClearDecoderProviderOptionsHardwareVendorId("MIGraphX");
  config->SetProviderOption("MIGraphX", "target", "reference");
  EXPECT_STREQ(OgaModel::Create(*config)->GetDeviceType(), "CPU");
  config->AppendProvider("ROCMExecutionProvider");
  EXPECT_THAT(message_of([&] { OgaModel::Create(*config); }), HasSubstr("'MIGraphX' and 'ROCMExecutionProvider'"));
  EXPECT_THAT(message_of([&] { OgaConfig::CreateFromPackageEp("a", "b"); }), HasSubstr("packages"));
}

TEST(model, an_overlay_changes_the_configuration) {
  const auto config = OgaConfig::Create(folder.c_str());
  config->Overlay(R"({"search": {"max_length": 9, "do_sample": true}})");
  const auto model = OgaModel::Create(*config);
  const auto params = OgaGeneratorParams::Create(*model);
  EXPECT_EQ(params->GetSearchNumber("max_length"), 9);
  EXPECT_TRUE(params->GetSearchBool("do_sample"));
  EXPECT_THAT(message_of([&] { config->Overlay(R"({"search": {"warmth": 9}})"); }),
              HasSubstr("Error encountered while parsing 'the overlay' search.warmth"));
  EXPECT_THAT(message_of([&] { config->Overlay("{"); }), HasSubstr("Error encountered while parsing"));
}

TEST(tokenizer, encodes_and_decodes) {
  const auto t = OgaTokenizer::Create(scripture());
  const golden &a = goldens()[0], &b = goldens()[1];
  const char* texts[] = {a.prompt.c_str(), b.prompt.c_str()};
  const auto batch = t->EncodeBatch(texts, 2);
  const auto longest = static_cast<int64_t>(b.prompt_ids.size());
  EXPECT_EQ(batch->Type(), OgaElementType_int32);
  EXPECT_THAT(batch->Shape(), ElementsAre(2, longest));
  ids wanted = a.prompt_ids;
  wanted.resize(b.prompt_ids.size(), 0);
  wanted.insert(wanted.end(), b.prompt_ids.begin(), b.prompt_ids.end());
  const auto* const made = static_cast<const int32_t*>(batch->Data());
  EXPECT_EQ(ids(made, made + wanted.size()), wanted);
  const auto back = t->DecodeBatch(*batch);
  ASSERT_EQ(back->Count(), 2u);
  EXPECT_EQ(back->Get(0), a.prompt);
  EXPECT_EQ(back->Get(1), b.prompt);
  EXPECT_THAT(message_of([&] { back->Get(2); }), HasSubstr("found 2"));
  const int64_t extents[] = {1};
  EXPECT_THAT(message_of([&] { t->DecodeBatch(*OgaTensor::Create(static_cast<int32_t*>(nullptr), extents)); }),
              HasSubstr("found i32[1]"));
  EXPECT_THAT(ids(t->GetEosTokenIds().begin(), t->GetEosTokenIds().end()), ElementsAre(0));
  EXPECT_EQ(t->GetBosTokenId(), 0);
  EXPECT_EQ(t->GetPadTokenId(), 0);
  EXPECT_THAT(message_of([&] { t->GetBotTokenId(); }), HasSubstr("no bot"));
  EXPECT_THAT(message_of([&] { t->GetEotTokenId(); }), HasSubstr("no eot"));
  EXPECT_THAT(message_of([&] { t->GetBorTokenId(); }), HasSubstr("no bor"));
  EXPECT_THAT(message_of([&] { t->GetEorTokenId(); }), HasSubstr("no eor"));
  const std::string end = "<|endoftext|>";
  EXPECT_EQ(t->ToTokenId(end.c_str()), 0);
  EXPECT_THAT(message_of([&] { t->ToTokenId("<|no such|>"); }), HasSubstr("'<|no such|>'"));
}

TEST(tokenizer, options_change_what_is_shown) {
  const auto t = OgaTokenizer::Create(folder.c_str());
  const ids tokens = {goldens()[0].prompt_ids[0], 0};
  EXPECT_STREQ(t->Decode(tokens), "In");
  const char *key = "skip_special_tokens", *off = "false", *bad = "perhaps", *other = "color";
  t->UpdateOptions(&key, &off, 1);
  EXPECT_STREQ(t->Decode(tokens), "In<|endoftext|>");
  const char *keys[] = {"skip_special_tokens", "color"}, *values[] = {"1", "1"};
  EXPECT_THAT(message_of([&] { t->UpdateOptions(keys, values, 2); }), HasSubstr("'color'"));
  EXPECT_STREQ(t->Decode(tokens), "In<|endoftext|>");  // as before the error
  EXPECT_THAT(message_of([&] { t->UpdateOptions(&key, &bad, 1); }), HasSubstr("found 'perhaps'"));
  EXPECT_THAT(message_of([&] { t->UpdateOptions(&other, &off, 1); }), HasSubstr("'color'"));
  EXPECT_THAT(message_of([] { OgaTokenizer::Create("/nowhere"); }), HasSubstr("/nowhere"));
}

TEST(tokenizer, chat_templates_are_rendered) {
  const auto config = OgaConfig::Create(folder.c_str());
  const auto t = OgaTokenizer::Create(*config);
  const char* const form =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools | length if tools else 'none' }}"
      "{% if add_generation_prompt %}<assistant>{% endif %}{{ mood }}";
  const char* const messages = R"([{"role": "user", "content": "Hello"}])";
  EXPECT_STREQ(t->ApplyChatTemplate(form, messages, "", true), "<user>Hellonone<assistant>");
  EXPECT_STREQ(t->ApplyChatTemplate(form, messages, R"([{"name": "a"}, {"name": "b"}])", false), "<user>Hello2");
  EXPECT_STREQ(t->ApplyChatTemplateWithOptions(form, messages, nullptr, R"({"mood": "calm"})", false),
               "<user>Hellononecalm");
  EXPECT_THAT(message_of([&] { t->ApplyChatTemplate(nullptr, messages, nullptr, true); }),
              HasSubstr("there is no chat template"));
  EXPECT_THAT(message_of([&] { t->ApplyChatTemplate("{% for", messages, nullptr, true); }), HasSubstr("chat template"));
  EXPECT_THAT(message_of([&] { t->ApplyChatTemplate(form, "{}", nullptr, true); }), HasSubstr("messages"));
}

TEST(values, lists_and_tensors) {
  const auto lists = OgaSequences::Create();
  lists->Append(5, 0), lists->Append(6, 0), lists->Append(ids{7, 8, 9});
  EXPECT_EQ(lists->Count(), 2u);
  EXPECT_THAT(ids(lists->Get(0).begin(), lists->Get(0).end()), ElementsAre(5, 6));
  EXPECT_EQ(lists->SequenceCount(2), 0u);
  EXPECT_EQ(lists->SequenceData(2), nullptr);
  EXPECT_THAT(message_of([&] { lists->Append(1, 5); }), HasSubstr("sequence index out of bounds"));

  const char* const words[] = {"a", "b"};
  const auto texts = OgaStringArray::Create(words, 2);
  texts->Add("c");
  EXPECT_EQ(texts->Count(), 3u);
  EXPECT_STREQ(texts->Get(2), "c");

  std::vector<uint16_t> data = {1, 2, 3, 4, 5, 6};
  const int64_t extents[] = {2, 3};
  const auto over = OgaTensor::Create(data.data(), extents, OgaElementType_bfloat16);
  EXPECT_EQ(over->Type(), OgaElementType_bfloat16);
  EXPECT_EQ(over->Data(), data.data());
  EXPECT_THAT(over->Shape(), ElementsAre(2, 3));
  auto all = OgaNamedTensors::Create();
  all->Set("b", *over), all->Set("a", *over);
  const auto again = all->Get("b");
  EXPECT_EQ(all->Count(), 2u);
  EXPECT_STREQ(all->GetNames()->Get(0), "a");
  all.reset();
  EXPECT_EQ(again->Data(), data.data());
  const auto named = OgaNamedTensors::Create();
  EXPECT_THAT(message_of([&] { named->Get("x"); }), HasSubstr("'x'"));
  EXPECT_THAT(message_of([&] { named->Delete("x"); }), HasSubstr("'x'"));

  for (int type = OgaElementType_float32; type <= OgaElementType_bfloat16; ++type)
    if (type != OgaElementType_string) {
      const auto own = OgaTensor::Create(nullptr, extents, static_cast<OgaElementType>(type));
      EXPECT_EQ(own->Type(), type);
      EXPECT_EQ(*static_cast<const char*>(own->Data()), 0);
    }
  EXPECT_THAT(message_of([&] { OgaTensor::Create(nullptr, extents, OgaElementType_string); }), HasSubstr("8"));
  const int64_t negative[] = {2, -1}, huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(message_of([&] { OgaTensor::Create(data.data(), negative, OgaElementType_int8); }),
              HasSubstr("found -1"));
  EXPECT_THAT(message_of([&] { OgaTensor::Create(data.data(), huge, OgaElementType_int8); }), HasSubstr("63 bits"));
  int64_t one = 0;
  EXPECT_NE(std::unique_ptr<OgaResult>(OgaTensorGetShape(over.get(), &one, 1)), nullptr);
}

std::string logged;

TEST(messages, go_where_they_are_asked_to) {
  Oga::SetLogCallback([](const char* text, size_t length) { logged.append(text, length); });
  const golden& g = goldens()[3];
  const auto run = [&] {
    logged.clear();
    const auto own = generator_of(g);
    own->GenerateNextToken();
    return logged;
  };
  EXPECT_EQ(run(), "");
  for (const char* name : {"enabled", "generate_next_token", "append_next_tokens"}) Oga::SetLogBool(name, true);
  const std::string prompt = [&] {
    std::string out;
    for (const int32_t t : g.prompt_ids) out += (out.empty() ? "" : " ") + std::to_string(t);
    return out;
  }();
  const std::string wanted =
      "append_next_tokens: " + prompt + "\ngenerate_next_token: " + std::to_string(g.all[g.prompt_ids.size()]) + "\n";
  EXPECT_EQ(run(), wanted);
  const test::temporary_folder temporary;
  const std::string file = temporary / "log.txt";
  Oga::SetLogString("filename", file.c_str());
  EXPECT_EQ(run(), "");
  Oga::SetLogString("filename", "");
  std::ifstream in(file);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), wanted);
  Oga::SetLogCallback([](const char* text, size_t length) { logged.append(text, length); });
  logged.clear();
  OgaRegisterExecutionProviderLibrary("MIGraphX", "libprovider.so");
  EXPECT_THAT(logged, HasSubstr("warning: execution provider library 'MIGraphX'"));
  for (const char* name : {"enabled", "generate_next_token", "append_next_tokens"}) Oga::SetLogBool(name, false);
  Oga::SetLogCallback(nullptr);
  EXPECT_THAT(message_of([] { Oga::SetLogBool("everything", true); }), HasSubstr("'everything'"));
  EXPECT_THAT(message_of([] { Oga::SetLogString("color", "red"); }), HasSubstr("'color'"));
  EXPECT_THAT(message_of([] { Oga::SetLogString("filename", "/nowhere/log"); }), HasSubstr("'/nowhere/log'"));
  Oga::SetCurrentGpuDeviceId(2);
  EXPECT_EQ(Oga::GetCurrentGpuDeviceId(), 2);
  Oga::SetCurrentGpuDeviceId(0);
  EXPECT_THAT(message_of([] { Oga::SetCurrentGpuDeviceId(-1); }), HasSubstr("found -1"));
}

TEST(media, is_refused_by_name) {
  EXPECT_THAT(message_of([] { OgaImages::Load({"a.png"}); }), HasSubstr("OgaLoadImages: kiln does not support images"));
  EXPECT_THAT(message_of([] { OgaAudios::Load({"a.wav"}); }), HasSubstr("OgaLoadAudios: kiln does not support audio"));
  EXPECT_THAT(message_of([] { OgaMultiModalProcessor::Create(scripture()); }), HasSubstr("images and audio"));
  EXPECT_THAT(message_of([] { OgaStreamingProcessor::Create(scripture()); }), HasSubstr("audio"));
  EXPECT_THAT(message_of([] { OgaMtpGenerator::Create(scripture(), scripture(), *params_of(9)); }), HasSubstr("MTP"));
}

}  // namespace
}  // namespace kiln::genai::testing
