#include "kiln/interface/c/impl/quantize_samples.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/options.hpp"
#include "kiln/quantize/table.hpp"

using namespace kiln;
using namespace kiln::c;

struct kiln_quantize_options {
  quantize::quantizer_options options;
};

struct kiln_ranges {
  quantize::ranges all;
  quantize::calibration_method by = quantize::calibration_method::min_max;
};

struct kiln_accuracy {
  program reference;
  quantize::accuracy_report report;
};

namespace {

compile_options options_of(const kiln_compile_options* options) {
  return options ? options->options : compile_options();
}

// What the ranges of a name are, where the caller wants them.
void put_range(const quantize::tensor_range& r, double* low, double* high) {
  put(low, r.whole.low);
  put(high, r.whole.high);
}

}  // namespace

kiln_status kiln_quantize_options_create(kiln_quantize_options** options) {
  return guarded([&] {
    kiln_quantize_options*& out = given(options, "options");
    out = new kiln_quantize_options;
  });
}

void kiln_quantize_options_destroy(kiln_quantize_options* options) { delete options; }

kiln_status kiln_quantize_options_set(kiln_quantize_options* options, const char* name, const char* value) {
  return guarded([&] {
    quantize::set_option(given(options, "options").options, not_null(name, "name"), not_null(value, "value"));
  });
}

kiln_status kiln_quantize_options_get(const kiln_quantize_options* options, const char* name, char** value) {
  return guarded([&] {
    char*& out = given(value, "value");
    out = new_string(quantize::get_option(given(options, "options").options, not_null(name, "name")));
  });
}

kiln_status kiln_calibrate(const kiln_program* program, const char* target, const kiln_quantize_options* options,
                           const kiln_compile_options* compiling, const kiln_samples* samples, kiln_ranges** ranges) {
  return guarded([&] {
    kiln_ranges*& out = given(ranges, "ranges");
    const auto& from = given(program, "program").graph;
    const auto& how = given(options, "options").options;
    const auto data = repeated(not_null(samples, "samples"));
    const auto with = options_of(compiling);
    const auto to = named_target(not_null(target, "target"), with);
    out = new kiln_ranges{quantize::quantizer(from, how, *to, with).calibrate(data()), how.calibration.method};
  });
}

kiln_status kiln_ranges_read(const char* path, kiln_ranges** ranges) {
  return guarded([&] {
    kiln_ranges*& out = given(ranges, "ranges");
    out = new kiln_ranges{quantize::read_table(not_null(path, "path"))};
  });
}

kiln_status kiln_ranges_write(const kiln_ranges* ranges, const char* path, const char* form) {
  return guarded([&] {
    const kiln_ranges& r = given(ranges, "ranges");
    quantize::write_table(not_null(path, "path"), r.all, quantize::table_form_named(not_null(form, "form")), r.by);
  });
}

void kiln_ranges_destroy(kiln_ranges* ranges) { delete ranges; }

kiln_status kiln_ranges_count(const kiln_ranges* ranges, size_t* count) {
  return guarded([&] { given(count, "count") = given(ranges, "ranges").all.size(); });
}

kiln_status kiln_ranges_item(const kiln_ranges* ranges, size_t index, const char** name, double* low, double* high) {
  return guarded([&] {
    const quantize::ranges& all = given(ranges, "ranges").all;
    if (index >= all.size())
      raise(fault::of(errc::invalid_argument, "an index lies within the ranges", all.size(), index));
    const auto& found = *std::next(all.begin(), static_cast<std::ptrdiff_t>(index));
    put(name, found.first.c_str());
    put_range(found.second, low, high);
  });
}

kiln_status kiln_ranges_find(const kiln_ranges* ranges, const char* name, double* low, double* high) {
  return guarded([&] {
    const quantize::ranges& all = given(ranges, "ranges").all;
    const auto at = all.find(not_null(name, "name"));
    if (at == all.end()) raise(errc::not_found, "no range of '" + std::string(name) + "'");
    put_range(at->second, low, high);
  });
}

kiln_status kiln_quantize(const kiln_program* program, const char* target, const kiln_quantize_options* options,
                          const kiln_compile_options* compiling, const kiln_ranges* ranges, const kiln_samples* samples,
                          kiln_program** quantized) {
  return guarded([&] {
    kiln_program*& out = given(quantized, "quantized");
    const kiln_program& from = given(program, "program");
    const auto& how = given(options, "options").options;
    const auto with = options_of(compiling);
    const auto to = named_target(not_null(target, "target"), with);
    quantize::quantized_program made = quantize::quantizer(from.graph, how, *to, with)
                                           .quantize(ranges ? ranges->all : quantize::ranges(), repeated(samples))
                                           .made;
    std::vector<std::string> remarks = from.remarks;
    for (std::string& r : quantize::remarks_on(how.how.to, made.note)) remarks.push_back(std::move(r));
    out = new_program(std::move(made.graph), std::move(remarks));
  });
}

kiln_status kiln_compare_accuracy(const kiln_program* reference, const kiln_program* quantized, const char* target,
                                  const kiln_compile_options* compiling, const kiln_samples* samples,
                                  kiln_accuracy** accuracy) {
  return guarded([&] {
    kiln_accuracy*& out = given(accuracy, "accuracy");
    auto made = std::make_unique<kiln_accuracy>();
    made->reference = quantize::prepared(given(reference, "reference").graph);
    const auto question = quantize::question_of(made->reference, given(quantized, "quantized").graph);
    const auto data = repeated(not_null(samples, "samples"));
    const auto with = options_of(compiling);
    const auto to = named_target(not_null(target, "target"), with);
    made->report = quantize::compare_accuracy(question, *to, data(), with);
    out = made.release();
  });
}

void kiln_accuracy_destroy(kiln_accuracy* accuracy) { delete accuracy; }

kiln_status kiln_accuracy_report(const kiln_accuracy* accuracy, kiln_format format, char** report) {
  return guarded([&] {
    char*& out = given(report, "report");
    const quantize::accuracy_report& r = given(accuracy, "accuracy").report;
    switch (format) {
      case KILN_TEXT: out = new_string(quantize::report_text(r)); return;
      case KILN_JSON: out = new_string(quantize::report_json(r)); return;
    }
    raise(fault::of(errc::invalid_argument, "a format is one of kiln_format", "0 or 1", static_cast<int>(format)));
  });
}

kiln_status kiln_accuracy_picture(const kiln_accuracy* accuracy, char** svg) {
  return guarded([&] {
    char*& out = given(svg, "svg");
    const kiln_accuracy& a = given(accuracy, "accuracy");
    out = new_string(quantize::report_svg(a.reference, a.report));
  });
}

kiln_status kiln_program_write_onnx(const kiln_program* program, const char* path) {
  return guarded([&] { onnx::write_model(not_null(path, "path"), given(program, "program").graph); });
}
