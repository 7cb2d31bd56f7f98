/* reload LIBRARY FOLDER: opening libonnxruntime-genai.so starts no thread; closing it after a text was made leaves none,
   and nothing of it in memory. */
#include <dlfcn.h>
#include <ort_genai_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../process.h"

static void* find(void* library, const char* name) {
  void* const at = dlsym(library, name);
  if (!at) fail(name, dlerror());
  return at;
}
/* A variable for a function of the library; C has no cast from an object's address to a function's. */
#define FIND(name)                            \
  __typeof__(&name) my_##name;                \
  void* const at_##name = find(library, #name); \
  memcpy(&my_##name, &at_##name, sizeof at_##name)

static void use(void* library, const char* folder) {
  FIND(OgaCreateModel);
  FIND(OgaCreateTokenizer);
  FIND(OgaCreateSequences);
  FIND(OgaTokenizerEncode);
  FIND(OgaCreateGeneratorParams);
  FIND(OgaGeneratorParamsSetSearchNumber);
  FIND(OgaCreateGenerator);
  FIND(OgaGenerator_AppendTokenSequences);
  FIND(OgaGenerator_IsDone);
  FIND(OgaGenerator_GenerateNextToken);
  FIND(OgaGenerator_GetSequenceCount);
  FIND(OgaResultGetError);
  FIND(OgaDestroyResult);
  FIND(OgaDestroyGenerator);
  FIND(OgaDestroyGeneratorParams);
  FIND(OgaDestroySequences);
  FIND(OgaDestroyTokenizer);
  FIND(OgaDestroyModel);
  FIND(OgaShutdown);
  OgaModel* model = NULL;
  OgaTokenizer* tokenizer = NULL;
  OgaSequences* prompt = NULL;
  OgaGeneratorParams* params = NULL;
  OgaGenerator* generator = NULL;
  OgaResult* error = my_OgaCreateModel("/nowhere", &model);
  if (!error || !strstr(my_OgaResultGetError(error), "/nowhere")) fail("OgaCreateModel", "found a folder");
  my_OgaDestroyResult(error);
  error = my_OgaCreateModel(folder, &model);
  if (!error) error = my_OgaCreateTokenizer(model, &tokenizer);
  if (!error) error = my_OgaCreateSequences(&prompt);
  if (!error) error = my_OgaTokenizerEncode(tokenizer, "In the beginning", prompt);
  if (!error) error = my_OgaCreateGeneratorParams(model, &params);
  if (!error) error = my_OgaGeneratorParamsSetSearchNumber(params, "max_length", 8);
  if (!error) error = my_OgaCreateGenerator(model, params, &generator);
  if (!error) error = my_OgaGenerator_AppendTokenSequences(generator, prompt);
  while (!error && !my_OgaGenerator_IsDone(generator)) error = my_OgaGenerator_GenerateNextToken(generator);
  if (error) fail("a call", my_OgaResultGetError(error));
  if (my_OgaGenerator_GetSequenceCount(generator, 0) != 8) fail("the text", "expected 8 tokens");
  my_OgaDestroyGenerator(generator);
  my_OgaDestroyGeneratorParams(params);
  my_OgaDestroySequences(prompt);
  my_OgaDestroyTokenizer(tokenizer);
  my_OgaDestroyModel(model);
  my_OgaShutdown();
}

int main(int count, char** words) {
  if (count != 3) fail("arguments", "expected the library's path and a folder");
  for (int i = 0; i < 3; ++i) {
    void* const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("dlopen", dlerror());
    if (threads_here() != 1) fail("dlopen", "the library starts threads when it is opened");
    use(library, words[2]);
    if (threads_here() != 1) fail("use", "threads are left");
    if (dlclose(library) != 0) fail("dlclose", dlerror());
    if (is_mapped("libonnxruntime-genai")) fail("dlclose", "the library stays in the process");
  }
  return 0;
}
