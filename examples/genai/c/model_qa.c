/* Answers questions, a line each, through GenAI's C interface: model_qa [FOLDER [PROVIDER]] */
#include <ort_genai_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(OgaResult* result) {
  if (!result) return;
  fprintf(stderr, "error: %s\n", OgaResultGetError(result));
  OgaDestroyResult(result);
  exit(1);
}

static void answer(const OgaModel* model, const OgaTokenizer* tokenizer, const char* question) {
  // [answer]
  OgaSequences* prompt = NULL;
  OgaGeneratorParams* params = NULL;
  OgaGenerator* generator = NULL;
  OgaTokenizerStream* stream = NULL;
  check(OgaCreateSequences(&prompt));
  check(OgaTokenizerEncode(tokenizer, question, prompt));
  check(OgaCreateGeneratorParams(model, &params));
  check(OgaGeneratorParamsSetSearchNumber(params, "max_length", 64));
  check(OgaCreateGenerator(model, params, &generator));
  check(OgaGenerator_AppendTokenSequences(generator, prompt));
  check(OgaCreateTokenizerStream(tokenizer, &stream));
  while (!OgaGenerator_IsDone(generator)) {
    const int32_t* next = NULL;
    size_t count = 0;
    const char* piece = NULL;
    check(OgaGenerator_GenerateNextToken(generator));
    check(OgaGenerator_GetNextTokens(generator, &next, &count));
    check(OgaTokenizerStreamDecode(stream, next[0], &piece));
    fputs(piece, stdout);
    fflush(stdout);
  }
  // [/answer]
  puts("");
  OgaDestroyTokenizerStream(stream);
  OgaDestroyGenerator(generator);
  OgaDestroyGeneratorParams(params);
  OgaDestroySequences(prompt);
}

int main(int argc, char** argv) {
  OgaConfig* config = NULL;
  OgaModel* model = NULL;
  OgaTokenizer* tokenizer = NULL;
  check(OgaCreateConfig(argc > 1 ? argv[1] : "examples/models/scripture", &config));
  if (argc > 2) {
    check(OgaConfigClearProviders(config));
    check(OgaConfigAppendProvider(config, argv[2]));
  }
  check(OgaCreateModelFromConfig(config, &model));
  check(OgaCreateTokenizer(model, &tokenizer));
  char line[4096];
  if (argc == 1) answer(model, tokenizer, "In the beginning");
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (line[0]) answer(model, tokenizer, line);
  }
  OgaDestroyTokenizer(tokenizer);
  OgaDestroyModel(model);
  OgaDestroyConfig(config);
  OgaShutdown();
  return 0;
}
