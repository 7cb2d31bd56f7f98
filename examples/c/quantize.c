/* A network from an ONNX file is put in integers of eight bits, from C: its ranges from scans that calibrate, how near
   it stays, and a file for other runtimes. */
#include <stdio.h>
#include <stdlib.h>

#include "kiln/interface/c/kiln.h"

static void check(kiln_status status) {
  if (status == KILN_OK) return;
  fprintf(stderr, "quantize: %s: %s\n", kiln_status_name(status), kiln_last_error());
  exit(2);
}

static const char model[] = "examples/models/digits/model.onnx";
static const char scan_file[] = "examples/models/digits/calibration.pb";

// [samples]
struct scans {
  float* pixels;
  size_t count;
};

/* Sample `index` is one scan; none after the last one. */
static kiln_status next_scan(void* user, size_t index, kiln_sample* sample) {
  const struct scans* const all = user;
  const int64_t lens[] = {1, 1, 8, 8};
  kiln_tensor* scan;
  if (index == all->count) return KILN_OK;
  kiln_status status = kiln_tensor_borrow(KILN_F32, 4, lens, NULL, all->pixels + 64 * index, NULL, NULL, &scan);
  if (status != KILN_OK) return status;
  status = kiln_sample_set(sample, "image", scan);
  kiln_tensor_destroy(scan);
  return status;
}
// [/samples]

int main(void) {
  kiln_tensor* scans;
  int64_t lens[KILN_MAX_RANK];
  void* pixels;
  check(kiln_tensor_read(scan_file, &scans));
  check(kiln_tensor_info(scans, NULL, NULL, lens, NULL));
  check(kiln_tensor_data(scans, &pixels));
  struct scans all = {pixels, (size_t)lens[0]};

  // [quantize]
  kiln_program *network, *in_bytes;
  kiln_quantize_options* options;
  kiln_samples* samples;
  kiln_ranges* ranges;
  check(kiln_program_import(model, NULL, &network));
  check(kiln_samples_create_callback(next_scan, &all, &samples));
  check(kiln_quantize_options_create(&options));
  check(kiln_quantize_options_set(options, "precision", "int8"));
  check(kiln_quantize_options_set(options, "method", "percentile"));
  check(kiln_calibrate(network, "eigen", options, NULL, samples, &ranges));
  check(kiln_quantize(network, "eigen", options, NULL, ranges, NULL, &in_bytes));

  kiln_accuracy* accuracy;
  char* report;
  check(kiln_compare_accuracy(network, in_bytes, "eigen", NULL, samples, &accuracy));
  check(kiln_accuracy_report(accuracy, KILN_TEXT, &report));
  // [/quantize]
  printf("%s", report);

  kiln_string_destroy(report);
  kiln_accuracy_destroy(accuracy);
  kiln_program_destroy(in_bytes);
  kiln_ranges_destroy(ranges);
  kiln_quantize_options_destroy(options);
  kiln_samples_destroy(samples);
  kiln_program_destroy(network);
  kiln_tensor_destroy(scans);
  return 0;
}
