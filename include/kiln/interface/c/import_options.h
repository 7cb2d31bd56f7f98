/* How kiln_program_import reads a model. A part of kiln.h, which includes it. */
#include "kiln/interface/c/kiln.h"

#ifndef KILN_INTERFACE_C_IMPORT_OPTIONS_H
#define KILN_INTERFACE_C_IMPORT_OPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_import_options kiln_import_options;
KILN_API kiln_status kiln_import_options_create(kiln_import_options** options);
KILN_API void kiln_import_options_destroy(kiln_import_options* options);
/* The value of a named dim ("batch"), or of the unnamed dim of an axis ("image.2"). */
KILN_API kiln_status kiln_import_options_set_dim(kiln_import_options* options, const char* name, int64_t value);
/* The extents of an input. */
KILN_API kiln_status kiln_import_options_set_shape(kiln_import_options* options, const char* input, size_t rank,
                                                   const int64_t* lens);
/* The value of an input that decides shapes: the program is then right for this value alone. Copied. */
KILN_API kiln_status kiln_import_options_set_value(kiln_import_options* options, const char* input,
                                                   const kiln_tensor* value);
/* Keeps an input that has a default in the model, which would else become a constant. */
KILN_API kiln_status kiln_import_options_keep_input(kiln_import_options* options, const char* input);
/* Where a model from memory has its external data; "." by default. */
KILN_API kiln_status kiln_import_options_set_directory(kiln_import_options* options, const char* path);

/* The rest is for TensorFlow's graphs and SavedModels; batch and signature are for TFLite files, too. "NHWC" (the
   default) or "NCHW": what images are where a node does not say. */
KILN_API kiln_status kiln_import_options_set_layout(kiln_import_options* options, const char* layout);
/* The extent of all dims that the graph leaves open; 0 keeps them open. */
KILN_API kiln_status kiln_import_options_set_batch(kiln_import_options* options, int64_t extent);
/* One more wanted value, NODE or NODE:K, or an output of the signature; without any they are what no node reads. */
KILN_API kiln_status kiln_import_options_add_output(kiln_import_options* options, const char* output);
/* The signature of a SavedModel, and the tag of its graph; NULL or "" is serving_default, and serve. A TFLite file has
   no tag; without a signature its first subgraph is imported, with its tensors' names. */
KILN_API kiln_status kiln_import_options_set_signature(kiln_import_options* options, const char* signature,
                                                       const char* tag);

#ifdef __cplusplus
}
#endif

#endif
