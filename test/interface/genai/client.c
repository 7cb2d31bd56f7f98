/* GenAI's C interface in C11: a text of the trained model, and what a client does wrong. client FOLDER TOKENS */
#include <ort_genai_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
#define CHECK(condition) \
  ((condition) ? (void)0 : (void)(++failures, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))

/* A call that succeeds. */
static void ok(int line, OgaResult* result) {
  if (!result) return;
  fprintf(stderr, "%s:%d: %s\n", __FILE__, line, OgaResultGetError(result));
  OgaDestroyResult(result);
  exit(1);
}
#define OK(call) ok(__LINE__, call)

/* A call that fails, with a message that has this text. */
static void refused(int line, const char* text, OgaResult* result) {
  if (!result || !strstr(OgaResultGetError(result), text)) {
    fprintf(stderr, "%s:%d: expected an error with '%s', found '%s'\n", __FILE__, line, text,
            result ? OgaResultGetError(result) : "none");
    ++failures;
  }
  OgaDestroyResult(result);
}
#define REFUSED(text, call) refused(__LINE__, text, call)

static char* read_file(const char* folder, const char* name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (!file) exit(1);
  char* text = calloc(1, 1 << 20);
  CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
  fclose(file);
  return text;
}

static void generate(const char* folder, size_t max_length) {
  OgaModel* model = NULL;
  OgaTokenizer* tokenizer = NULL;
  OgaTokenizerStream* stream = NULL;
  OgaSequences* prompt = NULL;
  OgaGeneratorParams* params = NULL;
  OgaGenerator* generator = NULL;
  OK(OgaCreateModel(folder, &model));
  OK(OgaCreateTokenizer(model, &tokenizer));
  OK(OgaCreateTokenizerStream(tokenizer, &stream));
  OK(OgaCreateSequences(&prompt));
  OK(OgaTokenizerEncode(tokenizer, "In the beginning", prompt));
  OK(OgaCreateGeneratorParams(model, &params));
  OK(OgaGeneratorParamsSetSearchNumber(params, "max_length", (double)max_length));
  OK(OgaGeneratorParamsSetSearchBool(params, "do_sample", false));
  OK(OgaCreateGenerator(model, params, &generator));
  OgaDestroyModel(model);
  OK(OgaGenerator_AppendTokenSequences(generator, prompt));
  char streamed[4096] = "In the beginning";
  for (size_t k = 0; k < OgaSequencesGetSequenceCount(prompt, 0); ++k) {
    const char* piece = NULL; /* the stream has seen the prompt */
    OK(OgaTokenizerStreamDecode(stream, OgaSequencesGetSequenceData(prompt, 0)[k], &piece));
  }
  while (!OgaGenerator_IsDone(generator)) {
    OK(OgaGenerator_GenerateNextToken(generator));
    const int32_t* next = NULL;
    size_t count = 0;
    const char* piece = NULL;
    OK(OgaGenerator_GetNextTokens(generator, &next, &count));
    CHECK(count == 1);
    OK(OgaTokenizerStreamDecode(stream, next[0], &piece));
    strcat(streamed, piece);
  }
  const size_t length = OgaGenerator_GetSequenceCount(generator, 0);
  const char* text = NULL;
  OK(OgaTokenizerDecode(tokenizer, OgaGenerator_GetSequenceData(generator, 0), length, &text));
  CHECK(length == max_length && OgaGenerator_TokenCount(generator) == length);
  CHECK(strcmp(text, streamed) == 0);
  char* golden = read_file(folder, "golden.json");
  CHECK(strlen(text) > 20 && strstr(golden, text));
  free(golden);
  printf("%s\n", text);
  OgaDestroyString(text);
  REFUSED("already at max_length", OgaGenerator_GenerateNextToken(generator));
  OK(OgaGenerator_RewindTo(generator, length - 1));
  CHECK(!OgaGenerator_IsDone(generator));
  OgaDestroyGenerator(generator);
  OgaDestroyGeneratorParams(params);
  OgaDestroySequences(prompt);
  OgaDestroyTokenizerStream(stream);
  OgaDestroyTokenizer(tokenizer);
}

/* Null where an object is asked for is an error that names it, and so is null as the place of the result. */
static void nulls(void) {
  OgaModel* model = (OgaModel*)1;
  OgaGenerator* generator = NULL;
  OgaSequences* sequences = NULL;
  REFUSED("the folder is given", OgaCreateModel(NULL, &model));
  CHECK(model == NULL);
  REFUSED("the place of the new object", OgaCreateModel("/nowhere", NULL));
  REFUSED("'/nowhere'", OgaCreateModel("/nowhere", &model));
  REFUSED("the model is given", OgaCreateGenerator(NULL, NULL, &generator));
  REFUSED("the configuration is given", OgaCreateModelFromConfig(NULL, &model));
  REFUSED("the generator is given", OgaGenerator_GenerateNextToken(NULL));
  OK(OgaCreateSequences(&sequences));
  REFUSED("the tokenizer is given", OgaTokenizerEncode(NULL, "a", sequences));
  REFUSED("the tokens", OgaAppendTokenSequence(NULL, 3, sequences));
  OgaDestroySequences(sequences);
  CHECK(OgaGenerator_IsDone(NULL) && OgaGenerator_GetSequenceCount(NULL, 0) == 0 && OgaSequencesCount(NULL) == 0);
  CHECK(!OgaGenerator_GetSequenceData(NULL, 0) && !OgaGenerator_IsSessionTerminated(NULL));
  CHECK(strcmp(OgaResultGetError(NULL), "") == 0);
  OgaDestroyAdapters(NULL), OgaDestroyAudios(NULL), OgaDestroyConfig(NULL), OgaDestroyEngine(NULL);
  OgaDestroyGenerator(NULL), OgaDestroyGeneratorParams(NULL), OgaDestroyImages(NULL), OgaDestroyModel(NULL);
  OgaDestroyMtpGenerator(NULL), OgaDestroyMultiModalProcessor(NULL), OgaDestroyNamedTensors(NULL);
  OgaDestroyRequest(NULL), OgaDestroyResult(NULL), OgaDestroyRuntimeSettings(NULL), OgaDestroySequences(NULL);
  OgaDestroySpeculativeStats(NULL), OgaDestroyStreamingProcessor(NULL), OgaDestroyString(NULL);
  OgaDestroyStringArray(NULL), OgaDestroyTensor(NULL), OgaDestroyTokenizer(NULL), OgaDestroyTokenizerStream(NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  generate(argv[1], (size_t)atoi(argv[2]));
  nulls();
  OgaShutdown();
  if (failures) fprintf(stderr, "%d checks failed\n", failures);
  return failures != 0;
}
