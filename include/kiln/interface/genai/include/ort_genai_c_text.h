/* Tokenizers of GenAI's C interface; ort_genai_c.h includes it. */
#pragma once
#include <ort_genai_c.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The tokenizer in a model's folder, or in a folder without its model. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizer(const OgaModel* model, OgaTokenizer** out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizerFromConfig(const OgaConfig* config, OgaTokenizer** out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizerFromPath(const char* config_path, OgaTokenizer** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyTokenizer(OgaTokenizer* tokenizer);
/** Sets `add_special_tokens` (begins as false) and `skip_special_tokens` (true); values are true, false, 1 or 0. After
    an error all options are as before. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaUpdateTokenizerOptions(OgaTokenizer* tokenizer, const char* const* keys,
                                                             const char* const* values, size_t num_options);
/** Tokens with a role; one that the model does not have is an error. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetBosTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetPadTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetBotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetEotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetBorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetEorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id);
/** The tokens that end a text, owned by the tokenizer. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerGetEosTokenIds(const OgaTokenizer* tokenizer,
                                                              const int32_t** eos_token_ids, size_t* token_count);
/** Appends a text's tokens to the sequences, as a list. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerEncode(const OgaTokenizer* tokenizer, const char* str,
                                                      OgaSequences* sequences);
/** The tokens of texts as an int32 tensor [count, longest], filled up at the end with the padding token. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerEncodeBatch(const OgaTokenizer* tokenizer, const char** strings,
                                                           size_t count, OgaTensor** out);
/** The texts of the rows of an int32 or int64 tensor [count, length]. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerDecodeBatch(const OgaTokenizer* tokenizer, const OgaTensor* tensor,
                                                           OgaStringArray** out);
/** The token with this spelling; there is an error where the vocabulary has none. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerToTokenId(const OgaTokenizer* tokenizer, const char* str,
                                                         int32_t* token_id);
/** The text of tokens, to be freed with OgaDestroyString. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerDecode(const OgaTokenizer* tokenizer, const int32_t* tokens,
                                                      size_t token_count, const char** out_string);
/** A conversation as a prompt. `template_str`: a Jinja template, null for the tokenizer's own; `messages` and `tools`
    (or null): lists in JSON; `template_kwargs` (or null): an object in JSON of further variables. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerApplyChatTemplate(const OgaTokenizer* tokenizer,
                                                                 const char* template_str, const char* messages,
                                                                 const char* tools, bool add_generation_prompt,
                                                                 const char** out_string);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerApplyChatTemplateWithOptions(
    const OgaTokenizer* tokenizer, const char* template_str, const char* messages, const char* tools,
    const char* template_kwargs, bool add_generation_prompt, const char** out_string);
/** Decodes token by token; bytes of a character that is not whole are held back. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTokenizerStream(const OgaTokenizer* tokenizer, OgaTokenizerStream** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyTokenizerStream(OgaTokenizerStream* stream);
/** The text that a token adds, owned by the stream and valid until its next call. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTokenizerStreamDecode(OgaTokenizerStream* stream, int32_t token,
                                                            const char** out);

#ifdef __cplusplus
}
#endif
