#include "kiln/generate/adapters.hpp"

#include "kiln/interface/genai/impl/handles.hpp"

struct OgaAdapters {
  kiln::genai::model_ref model;
  kiln::language::adapters value;
};

using namespace kiln::genai;

OgaResult* OgaCreateAdapters(const OgaModel* model, OgaAdapters** out) {
  return made(out, [&] {
    const model_ref& m = given(model, "the model").value;
    return new OgaAdapters{m, kiln::language::adapters(m->decoder())};
  });
}
void OgaDestroyAdapters(OgaAdapters* adapters) { delete adapters; }
OgaResult* OgaLoadAdapter(OgaAdapters* adapters, const char* adapter_file_path, const char* adapter_name) {
  return guarded([&] {
    given(adapters, "the adapters")
        .value.load(std::filesystem::path(text(adapter_file_path, "the adapter's file")),
                    text(adapter_name, "the adapter's name"));
  });
}
OgaResult* OgaUnloadAdapter(OgaAdapters* adapters, const char* adapter_name) {
  return guarded([&] { given(adapters, "the adapters").value.unload(text(adapter_name, "the adapter's name")); });
}
OgaResult* OgaSetActiveAdapter(OgaGenerator* generator, OgaAdapters* adapters, const char* adapter_name) {
  return guarded([&] {
    given(generator, "the generator")
        .value.set_active_adapter(given(adapters, "the adapters").value, text(adapter_name, "the adapter's name"));
  });
}
