/* quantize FOLDER [SCANS]: calibration, tables, quantization and the accuracy report, of the first SCANS of 128 scans. Files
   are written to FOLDER. */
#include "check.h"

static kiln_program* network;
static kiln_tensor* scans;
static int scan_count = 128;

/* Sample k is scan k, in memory that the callback writes over each time. */
struct scan_source {
  const float* pixels;
  size_t count, calls;
  kiln_status fails;
};

static kiln_status next_scan(void* user, size_t index, kiln_sample* sample) {
  struct scan_source* const from = user;
  const int64_t lens[] = {1, 1, 8, 8};
  kiln_tensor* one = NULL;
  ++from->calls;
  if (from->fails != KILN_OK && index == 1) return kiln_sample_fail(sample, from->fails, "the camera is off");
  if (index == from->count) return KILN_OK;
  float pixels[64];
  memcpy(pixels, from->pixels + 64 * index, sizeof pixels);
  kiln_status status = kiln_tensor_borrow(KILN_F32, 4, lens, NULL, pixels, NULL, NULL, &one);
  if (status == KILN_OK) status = kiln_sample_set(sample, "image", one);
  kiln_tensor_destroy(one);
  memset(pixels, 0, sizeof pixels);
  return status;
}

static kiln_quantize_options* options_for(const char* precision) {
  kiln_quantize_options* options = NULL;
  OK(kiln_quantize_options_create(&options));
  OK(kiln_quantize_options_set(options, "precision", precision));
  return options;
}

static kiln_samples* all_scans(void) {
  kiln_samples* samples = NULL;
  const char* const names[] = {"image"};
  const kiln_tensor* const inputs[] = {scans};
  OK(kiln_samples_create(&samples));
  OK(kiln_samples_add(samples, 1, names, inputs));
  return samples;
}

/* The rows that a program computes from the scans; the caller destroys them. */
static kiln_tensor* rows_of(const kiln_program* program) {
  kiln_executable* const exe = compile_for(program, "eigen");
  kiln_workspace* workspace = NULL;
  kiln_tensor* rows = NULL;
  const kiln_tensor* const inputs[] = {scans};
  OK(kiln_workspace_create(&workspace));
  OK(kiln_run(exe, workspace, 1, inputs, 1, &rows, NULL));
  kiln_workspace_destroy(workspace);
  kiln_executable_destroy(exe);
  if (!rows) exit(finish());
  return rows;
}

static void check_rows(const kiln_program* program, const kiln_tensor* expected, float apart) {
  kiln_tensor* const rows = rows_of(program);
  for (int k = 0; k < 10 * scan_count; ++k) CHECK(fabsf(floats_of(rows)[k] - floats_of(expected)[k]) <= apart);
  kiln_tensor_destroy(rows);
}

static void test_ranges(const char* folder) {
  char path[512];
  kiln_quantize_options* const options = options_for("int8");
  kiln_samples *by_array = all_scans(), *by_callback = NULL;
  kiln_ranges *ranges = NULL, *same = NULL, *read = NULL;
  struct scan_source source = {floats_of(scans), (size_t)scan_count, 0, KILN_OK};
  OK(kiln_samples_create_callback(next_scan, &source, &by_callback));
  OK(kiln_calibrate(network, "eigen", options, NULL, by_array, &ranges));
  OK(kiln_calibrate(network, "eigen", options, NULL, by_callback, &same));
  CHECK(source.calls == (size_t)scan_count + 1);
  size_t count = 0, count_of_same = 0;
  OK(kiln_ranges_count(ranges, &count));
  OK(kiln_ranges_count(same, &count_of_same));
  CHECK(count >= 5 && count == count_of_same);
  for (size_t k = 0; k < count; ++k) {
    const char* name = NULL;
    double low = 1, high = 0, low_of_same = 1, high_of_same = 0;
    OK(kiln_ranges_item(ranges, k, &name, &low, &high));
    OK(kiln_ranges_find(same, name, &low_of_same, &high_of_same));
    CHECK(low < high && fabs(low - low_of_same) < 1e-5 && fabs(high - high_of_same) < 1e-5);
  }
  double low = 1, high = 0;
  OK(kiln_ranges_find(ranges, "image", &low, &high));
  CHECK(low == 0 && high > 0.5);

  static const char* const forms[] = {"json", "native", "plain_json", "flatbuffers", "cache"};
  for (int k = 0; k < 5; ++k) {
    snprintf(path, sizeof path, "%s/table", folder);
    OK(kiln_ranges_write(ranges, path, forms[k]));
    OK(kiln_ranges_read(path, &read));
    size_t found = 0;
    double kept = 0;
    OK(kiln_ranges_count(read, &found));
    OK(kiln_ranges_find(read, "image", NULL, &kept));
    CHECK(found == count && fabs(kept - high) < 1e-6);
    kiln_ranges_destroy(read);
  }
  remove(path);
  REFUSED(KILN_BAD_PARAM, "within the ranges", kiln_ranges_item(ranges, count, NULL, NULL, NULL));
  REFUSED(KILN_NOT_FOUND, "'imago'", kiln_ranges_find(ranges, "imago", NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "yaml", kiln_ranges_write(ranges, path, "yaml"));
  REFUSED(KILN_NOT_FOUND, "no/such", kiln_ranges_read("no/such/table", &read));
  REFUSED(KILN_MALFORMED, "model.onnx", kiln_ranges_read(DIGITS "model.onnx", &read));
  kiln_ranges_destroy(same);
  kiln_ranges_destroy(ranges);
  kiln_samples_destroy(by_callback);
  kiln_samples_destroy(by_array);
  kiln_quantize_options_destroy(options);
}

/* By ranges, by samples and by the file that was written: the same bits. */
static void test_int8(const char* folder, const kiln_tensor* exact) {
  char path[512];
  kiln_quantize_options* const options = options_for("int8");
  kiln_samples* const samples = all_scans();
  kiln_ranges* ranges = NULL;
  kiln_program *by_ranges = NULL, *by_samples = NULL, *written = NULL;
  OK(kiln_calibrate(network, "eigen", options, NULL, samples, &ranges));
  OK(kiln_quantize(network, "eigen", options, NULL, ranges, NULL, &by_ranges));
  OK(kiln_quantize(network, "eigen", options, NULL, NULL, samples, &by_samples));
  kiln_tensor* const rows = rows_of(by_ranges);
  check_rows(by_samples, rows, 0);
  check_rows(by_ranges, exact, 0.05f);
  snprintf(path, sizeof path, "%s/q.onnx", folder);
  OK(kiln_program_write_onnx(by_ranges, path));
  OK(kiln_program_import(path, NULL, &written));
  check_rows(written, rows, 0);
  remove(path);

  kiln_accuracy* accuracy = NULL;
  char *text = NULL, *json = NULL, *svg = NULL;
  OK(kiln_compare_accuracy(network, by_ranges, "eigen", NULL, samples, &accuracy));
  OK(kiln_accuracy_report(accuracy, KILN_TEXT, &text));
  OK(kiln_accuracy_report(accuracy, KILN_JSON, &json));
  OK(kiln_accuracy_picture(accuracy, &svg));
  CHECK(strstr(text, " dB, cosine ") && strstr(text, "% saturate") && strstr(text, "top-1 100.00 %"));
  CHECK(strstr(json, "\"saturation\"") && strstr(json, "\"zero_point\"") && strstr(json, "\"top1\": 1.0"));
  CHECK(strncmp(svg, "<svg", 4) == 0 && strstr(svg, "<title>image: "));
  REFUSED(KILN_BAD_PARAM, "kiln_format", kiln_accuracy_report(accuracy, (kiln_format)2, &text));
  kiln_string_destroy(text);
  kiln_string_destroy(json);
  kiln_string_destroy(svg);
  kiln_accuracy_destroy(accuracy);
  kiln_tensor_destroy(rows);
  kiln_program_destroy(written);
  kiln_program_destroy(by_samples);
  kiln_program_destroy(by_ranges);
  kiln_ranges_destroy(ranges);
  kiln_samples_destroy(samples);
  kiln_quantize_options_destroy(options);
}

static void test_other_precisions(const kiln_tensor* exact) {
  static const struct {
    const char *precision, *option, *value;
    int samples;
    float apart;
  } cases[] = {{"fp16", "method", "min_max", 1, 5e-3f},      {"fp16", "method", "min_max", 0, 5e-3f},
               {"bf16", "ops", "dot,convolution", 0, 0.05f}, {"dynamic-int8", "per_channel", "false", 0, 0.05f},
               {"int4", "symmetric", "false", 0, 0.3f},      {"int4", "weight_method", "gptq", 1, 0.3f},
               {"int8", "smooth_quant", "0.5", 1, 0.05f},
               {"int8", "overrides", "{\"image\":{\"high\":17.0}}", 1, 0.05f},
               {"int8", "min_sqnr", "35", 1, 0.05f},         {"int8", "exclude", "/net/net.0/Conv", 1, 0.05f}};
  kiln_samples* const samples = all_scans();
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    kiln_quantize_options* const options = options_for(cases[k].precision);
    kiln_program* made = NULL;
    char* value = NULL;
    OK(kiln_quantize_options_set(options, cases[k].option, cases[k].value));
    OK(kiln_quantize_options_get(options, cases[k].option, &value));
    CHECK(value && strcmp(value, cases[k].value) == 0);
    kiln_string_destroy(value);
    OK(kiln_quantize(network, "eigen", options, NULL, NULL, cases[k].samples ? samples : NULL, &made));
    if (made) check_rows(made, exact, cases[k].apart);
    kiln_program_destroy(made);
    kiln_quantize_options_destroy(options);
  }
  kiln_samples_destroy(samples);
}

/* What was not quantized stands in the report of its compilation. */
static void test_remarks(void) {
  kiln_quantize_options* const options = options_for("dynamic-int8");
  kiln_program* made = NULL;
  char* report = NULL;
  OK(kiln_quantize(network, "eigen", options, NULL, NULL, NULL, &made));
  kiln_executable* const exe = compile_for(made, "eigen");
  OK(kiln_executable_report(exe, KILN_TEXT, &report));
  CHECK(strstr(report, "stays in floats: convolutions are quantized by ranges, or where options ask for it"));
  kiln_string_destroy(report);
  kiln_executable_destroy(exe);
  kiln_program_destroy(made);
  kiln_quantize_options_destroy(options);
}

static void test_mistakes(void) {
  kiln_quantize_options *const int8 = options_for("int8"), *const bf16 = options_for("bf16"), *none = NULL;
  kiln_samples *const samples = all_scans(), *empty = NULL, *broken = NULL, *other = NULL;
  kiln_ranges *ranges = NULL, *nothing = NULL;
  kiln_program* made = NULL;
  kiln_accuracy* accuracy = NULL;
  struct scan_source source = {floats_of(scans), (size_t)scan_count, 0, KILN_IO};
  const char* const names[] = {"imago"};
  const kiln_tensor* const inputs[] = {scans};
  OK(kiln_quantize_options_create(&none));
  OK(kiln_samples_create(&empty));
  OK(kiln_samples_create(&other));
  OK(kiln_samples_add(other, 1, names, inputs));
  OK(kiln_samples_create_callback(next_scan, &source, &broken));
  OK(kiln_calibrate(network, "eigen", int8, NULL, samples, &ranges));

  REFUSED(KILN_BAD_PARAM, "int8 needs the ranges", kiln_quantize(network, "eigen", int8, NULL, NULL, NULL, &made));
  REFUSED(KILN_BAD_PARAM, "a precision to quantize to", kiln_quantize(network, "eigen", none, NULL, NULL, NULL, &made));
  REFUSED(KILN_BAD_PARAM, "ranges have no use", kiln_quantize(network, "eigen", bf16, NULL, ranges, NULL, &made));
  REFUSED(KILN_BAD_PARAM, "samples have no use", kiln_quantize(network, "eigen", bf16, NULL, NULL, samples, &made));
  REFUSED(KILN_BAD_PARAM, "ranges are given", kiln_quantize(network, "eigen", int8, NULL, ranges, samples, &made));
  REFUSED(KILN_NOT_FOUND, "eigen, reference", kiln_quantize(network, "abacus", int8, NULL, ranges, NULL, &made));
  REFUSED(KILN_BAD_PARAM, "ranges have no use", kiln_calibrate(network, "eigen", bf16, NULL, samples, &nothing));
  REFUSED(KILN_BAD_PARAM, "found none", kiln_calibrate(network, "eigen", int8, NULL, empty, &nothing));
  REFUSED(KILN_NOT_FOUND, "imago", kiln_calibrate(network, "eigen", int8, NULL, other, &nothing));
  REFUSED(KILN_IO, "the camera is off", kiln_calibrate(network, "eigen", int8, NULL, broken, &nothing));
  REFUSED(KILN_BAD_PARAM, "found none", kiln_compare_accuracy(network, network, "eigen", NULL, empty, &accuracy));
  OK(kiln_quantize_options_set(bf16, "bits", "8"));
  REFUSED(KILN_BAD_PARAM, "'bits' means nothing to bf16",
          kiln_quantize(network, "eigen", bf16, NULL, NULL, NULL, &made));
  REFUSED(KILN_NOT_FOUND, "nearest 'bits'", kiln_quantize_options_set(int8, "bit", "8"));
  REFUSED(KILN_BAD_PARAM, "one of as_written, fp16", kiln_quantize_options_set(int8, "precision", "int7"));
  REFUSED(KILN_NOT_FOUND, "no option", kiln_quantize_options_get(int8, "bit", &(char*){NULL}));
  REFUSED(KILN_BAD_PARAM, "'image', kind", kiln_quantize_options_set(int8, "overrides", "{\"image\": {\"kind\": 1}}"));
  OK(kiln_quantize_options_set(int8, "smooth_quant", "0.5"));
  REFUSED(KILN_BAD_PARAM, "smoothing changes the ranges",
          kiln_quantize(network, "eigen", int8, NULL, ranges, samples, &made));
  OK(kiln_quantize_options_set(int8, "smooth_quant", ""));
  OK(kiln_quantize_options_set(int8, "exclude", "nobody"));
  REFUSED(KILN_NOT_FOUND, "'nobody'", kiln_quantize(network, "eigen", int8, NULL, ranges, NULL, &made));
  REFUSED(KILN_BAD_PARAM, "take no others", kiln_samples_add(broken, 1, names, inputs));
  REFUSED(KILN_BAD_PARAM, "a sample has an input", kiln_samples_add(empty, 0, NULL, NULL));
  REFUSED(KILN_IO, "no/such", kiln_program_write_onnx(network, "no/such/folder/q.onnx"));
  CHECK(made == NULL && nothing == NULL && accuracy == NULL);
  kiln_ranges_destroy(ranges);
  kiln_samples_destroy(other);
  kiln_samples_destroy(broken);
  kiln_samples_destroy(empty);
  kiln_samples_destroy(samples);
  kiln_quantize_options_destroy(none);
  kiln_quantize_options_destroy(bf16);
  kiln_quantize_options_destroy(int8);
}

static void test_null(void) {
  kiln_quantize_options* const o = options_for("int8");
  kiln_samples* const s = all_scans();
  const char* const names[] = {NULL};
  const kiln_tensor* const inputs[] = {scans};
  kiln_ranges* r = NULL;
  kiln_program* p = NULL;
  kiln_accuracy* a = NULL;
  REFUSED(KILN_BAD_PARAM, "options", kiln_quantize_options_create(NULL));
  REFUSED(KILN_BAD_PARAM, "options", kiln_quantize_options_set(NULL, "bits", "8"));
  REFUSED(KILN_BAD_PARAM, "name", kiln_quantize_options_set(o, NULL, "8"));
  REFUSED(KILN_BAD_PARAM, "value", kiln_quantize_options_set(o, "bits", NULL));
  REFUSED(KILN_BAD_PARAM, "value", kiln_quantize_options_get(o, "bits", NULL));
  REFUSED(KILN_BAD_PARAM, "samples", kiln_samples_create(NULL));
  REFUSED(KILN_BAD_PARAM, "next", kiln_samples_create_callback(NULL, NULL, &(kiln_samples*){NULL}));
  REFUSED(KILN_BAD_PARAM, "samples", kiln_samples_create_callback(next_scan, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "samples", kiln_samples_add(NULL, 1, names, inputs));
  REFUSED(KILN_BAD_PARAM, "names", kiln_samples_add(s, 1, NULL, inputs));
  REFUSED(KILN_BAD_PARAM, "inputs", kiln_samples_add(s, 1, names, NULL));
  REFUSED(KILN_BAD_PARAM, "a name", kiln_samples_add(s, 1, names, inputs));
  REFUSED(KILN_BAD_PARAM, "sample", kiln_sample_set(NULL, "image", scans));
  REFUSED(KILN_BAD_PARAM, "program", kiln_calibrate(NULL, "eigen", o, NULL, s, &r));
  REFUSED(KILN_BAD_PARAM, "target", kiln_calibrate(network, NULL, o, NULL, s, &r));
  REFUSED(KILN_BAD_PARAM, "options", kiln_calibrate(network, "eigen", NULL, NULL, s, &r));
  REFUSED(KILN_BAD_PARAM, "samples", kiln_calibrate(network, "eigen", o, NULL, NULL, &r));
  REFUSED(KILN_BAD_PARAM, "ranges", kiln_calibrate(network, "eigen", o, NULL, s, NULL));
  REFUSED(KILN_BAD_PARAM, "ranges", kiln_ranges_read("t", NULL));
  REFUSED(KILN_BAD_PARAM, "path", kiln_ranges_read(NULL, &r));
  REFUSED(KILN_BAD_PARAM, "ranges", kiln_ranges_write(NULL, "t", "json"));
  REFUSED(KILN_BAD_PARAM, "ranges", kiln_ranges_count(NULL, &(size_t){0}));
  REFUSED(KILN_BAD_PARAM, "ranges", kiln_ranges_item(NULL, 0, NULL, NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "ranges", kiln_ranges_find(NULL, "image", NULL, NULL));
  REFUSED(KILN_BAD_PARAM, "program", kiln_quantize(NULL, "eigen", o, NULL, NULL, s, &p));
  REFUSED(KILN_BAD_PARAM, "target", kiln_quantize(network, NULL, o, NULL, NULL, s, &p));
  REFUSED(KILN_BAD_PARAM, "options", kiln_quantize(network, "eigen", NULL, NULL, NULL, s, &p));
  REFUSED(KILN_BAD_PARAM, "quantized", kiln_quantize(network, "eigen", o, NULL, NULL, s, NULL));
  REFUSED(KILN_BAD_PARAM, "reference", kiln_compare_accuracy(NULL, network, "eigen", NULL, s, &a));
  REFUSED(KILN_BAD_PARAM, "quantized", kiln_compare_accuracy(network, NULL, "eigen", NULL, s, &a));
  REFUSED(KILN_BAD_PARAM, "target", kiln_compare_accuracy(network, network, NULL, NULL, s, &a));
  REFUSED(KILN_BAD_PARAM, "samples", kiln_compare_accuracy(network, network, "eigen", NULL, NULL, &a));
  REFUSED(KILN_BAD_PARAM, "accuracy", kiln_compare_accuracy(network, network, "eigen", NULL, s, NULL));
  REFUSED(KILN_BAD_PARAM, "accuracy", kiln_accuracy_report(NULL, KILN_TEXT, &(char*){NULL}));
  REFUSED(KILN_BAD_PARAM, "accuracy", kiln_accuracy_picture(NULL, &(char*){NULL}));
  REFUSED(KILN_BAD_PARAM, "program", kiln_program_write_onnx(NULL, "t"));
  REFUSED(KILN_BAD_PARAM, "path", kiln_program_write_onnx(network, NULL));
  CHECK(kiln_sample_fail(NULL, KILN_IO, NULL) == KILN_IO);
  kiln_quantize_options_destroy(NULL);
  kiln_samples_destroy(NULL);
  kiln_ranges_destroy(NULL);
  kiln_accuracy_destroy(NULL);
  kiln_samples_destroy(s);
  kiln_quantize_options_destroy(o);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2) scan_count = atoi(argv[2]);
  network = import_model(DIGITS "model.onnx");
  kiln_tensor* const all = read_tensor(DIGITS "calibration.pb");
  const int64_t lens[] = {scan_count, 1, 8, 8};
  OK(kiln_tensor_borrow(KILN_F32, 4, lens, NULL, (void*)floats_of(all), NULL, NULL, &scans));
  kiln_tensor* const exact = rows_of(network);
  test_ranges(argv[1]);
  test_int8(argv[1], exact);
  test_other_precisions(exact);
  test_remarks();
  test_mistakes();
  test_null();
  kiln_tensor_destroy(exact);
  kiln_tensor_destroy(scans);
  kiln_tensor_destroy(all);
  kiln_program_destroy(network);
  return finish();
}
