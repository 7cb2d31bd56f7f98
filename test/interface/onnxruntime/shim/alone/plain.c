/* A program in C that was linked with another libonnxruntime.so.1, and runs with kiln's: expects what its first argument
   says, "runs" or a part of a message. */
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <string.h>

static const OrtApi* api;

/* Ends the program as it was meant to where a call fails with the expected message. */
static int failed(OrtStatus* status, const char* expected) {
  if (!status) return 0;
  printf("%s\n", api->GetErrorMessage(status));
  const int as_expected = strstr(api->GetErrorMessage(status), expected) != NULL;
  api->ReleaseStatus(status);
  return as_expected ? 1 : 2;
}

int main(int count, char** arguments) {
  const char* const expected = count > 1 ? arguments[1] : "runs";
  OrtEnv* env = NULL;
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  size_t inputs = 0;
  int end = 0;
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!api) return puts("no table of functions"), 1;
  if ((end = failed(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "plain", &env), expected)) ||
      (end = failed(api->CreateSessionOptions(&options), expected)) ||
      (end = failed(OrtSessionOptionsAppendExecutionProvider_MIGraphX(options, 0), expected)) ||
      (end = failed(api->CreateSession(env, "examples/models/digits/model.onnx", options, &session), expected)))
    return end - 1;
  if (failed(api->SessionGetInputCount(session, &inputs), "") || inputs != 1) return 1;
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
  return strcmp(expected, "runs") != 0;
}
