// The environment is counted as ONNX Runtime counts it: plugins leave it with the program's last reference, and come
// back with the next session; several threads may append at once.
#include "help.hpp"

#include <memory>
#include <thread>

namespace {

/// Whether kiln's plugin is in the environment.
bool registered(const Ort::Env& env) {
  for (const Ort::ConstEpDevice& d : env.GetEpDevices())
    if (d.EpName() == std::string("MIGraphXExecutionProvider")) return true;
  return false;
}

void append_and_run(const Ort::Env& env) {
  Ort::SessionOptions so = recorded();
  Ort::ThrowOnError(OrtSessionOptionsAppendExecutionProvider_MIGraphX(so, 0));
  Ort::Session session(env, digits, so);
  CHECK(takes_all(session, "MIGraphXExecutionProvider"));
  CHECK(!run(session).empty());
}

void with_two_references() {
  auto first = std::make_unique<Ort::Env>(ORT_LOGGING_LEVEL_ERROR, "first");
  CHECK(!registered(*first));
  append_and_run(*first);
  CHECK(registered(*first));
  Ort::Env second(ORT_LOGGING_LEVEL_ERROR, "second");
  CHECK(static_cast<OrtEnv*>(second) == static_cast<OrtEnv*>(*first));
  first.reset();
  CHECK(registered(second));  // one reference is left
  append_and_run(second);
}

void again() {
  for (int i = 0; i < 3; ++i) {
    Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "again");
    CHECK(!registered(env));  // the last one was released for good
    append_and_run(env);
  }
}

// Options that are made before the environment: its level of log lines is the program's all the same.
void options_first() {
  std::string lines;
  Ort::SessionOptions so;
  so.AppendExecutionProvider("kiln");
  {
    Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "late");
    Ort::Session session(env, digits, so);
    CHECK(!run(session).empty());
  }
  // the reference that kiln held for those options went with the program's
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "after");
  CHECK(!registered(env) && env.GetEpDevices().size() >= 1);
}

// A program that registers the plugin itself keeps its registration.
void own_registration(const char* plugin) {
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "own");
  env.RegisterExecutionProviderLibrary("MIGraphXExecutionProvider", plugin);
  const std::size_t before = env.GetEpDevices().size();
  append_and_run(env);
  CHECK(env.GetEpDevices().size() == before);
  env.UnregisterExecutionProviderLibrary("MIGraphXExecutionProvider");
  CHECK(!registered(env));
  append_and_run(env);
  // and one that unregisters what kiln registered finds an environment that can still be released
  env.UnregisterExecutionProviderLibrary("MIGraphXExecutionProvider");
}

void with_threads() {
  Ort::ThreadingOptions pools;
  pools.SetGlobalIntraOpNumThreads(1).SetGlobalInterOpNumThreads(1);
  Ort::Env env(pools, ORT_LOGGING_LEVEL_ERROR, "pools");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      Ort::SessionOptions so = recorded();
      so.AppendExecutionProvider(i % 2 ? "kiln" : "MIGraphX", {{"threads", "1"}});
      Ort::Session session(env, digits, so);
      CHECK(takes_all(session, i % 2 ? "KilnExecutionProvider" : "MIGraphXExecutionProvider"));
      CHECK(!run(session).empty());
    });
  for (std::thread& t : threads) t.join();
}

int logged = 0;

void with_logger() {
  const auto log = [](void* count, OrtLoggingLevel, const char*, const char*, const char*, const char*) {
    ++*static_cast<int*>(count);
  };
  Ort::Env env(ORT_LOGGING_LEVEL_VERBOSE, "logger", log, &logged);
  append_and_run(env);
  CHECK(logged > 0);
}

}  // namespace

int main(int, char** arguments) {
  with_two_references();
  again();
  options_first();
  own_registration(arguments[1]);
  with_threads();
  with_logger();
  std::puts("ok");
}
