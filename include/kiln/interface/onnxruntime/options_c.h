#ifndef KILN_ONNXRUNTIME_OPTIONS_C_H
#define KILN_ONNXRUNTIME_OPTIONS_C_H
#include <stddef.h>

/* What libkiln_onnxruntime_ep.so says of its options, for libraries that speak for it in other languages. */
#ifdef __cplusplus
extern "C" {
#endif

/** The table of options as JSON: an array of objects with name, also, environment, kind, default, expected and help. It
    lives as long as the library. Null where there is no memory for it. */
const char* kiln_onnxruntime_option_table(void);

/** The value of every option of a session that is given `count` options, with this process's environment: a JSON object
    of texts by the table's names (flags "1" and "0"). Returns 0, or 1 with the text of the error in `*text` instead
    (null where there is no memory for it); a key or value that is null is an error, and so is a null `text`.
    `kiln_onnxruntime_free` frees the text. */
int kiln_onnxruntime_resolved_options(const char* const* keys, const char* const* values, size_t count, char** text);

void kiln_onnxruntime_free(char* text);

#ifdef __cplusplus
}
#endif
#endif
