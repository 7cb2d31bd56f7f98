/* Tensors of strings, files of tensors. */
#include "check.h"

static void test_strings(void) {
  const char* const texts[] = {"one", "two\0more", ""};
  const size_t lengths[] = {3, 8, 0};
  const int64_t three = 3;
  kiln_tensor* tensor = NULL;
  kiln_dtype type = KILN_F32;
  const char* text = NULL;
  size_t length = 9;
  OK(kiln_tensor_create_strings(1, &three, texts, lengths, &tensor));
  OK(kiln_tensor_info(tensor, &type, NULL, NULL, NULL));
  CHECK(type == KILN_STRING);
  OK(kiln_tensor_string(tensor, 1, &text, &length));
  CHECK(length == 8 && memcmp(text, "two\0more", 9) == 0);
  OK(kiln_tensor_string(tensor, 2, &text, &length));
  CHECK(length == 0 && *text == 0);
  REFUSED(KILN_BAD_PARAM, "within the elements: expected 3, found 3", kiln_tensor_string(tensor, 3, &text, NULL));
  REFUSED(KILN_UNSUPPORTED, "string", kiln_tensor_copy_to(tensor, &length, sizeof length));
  kiln_tensor_destroy(tensor);
  OK(kiln_tensor_create_strings(1, &three, texts, NULL, &tensor));
  OK(kiln_tensor_string(tensor, 1, &text, &length));
  CHECK(length == 3);
  kiln_tensor_destroy(tensor);
}

static void test_files(const char* path) {
  const int64_t lens[] = {2, 2};
  float values[] = {1, 2, 3, 4}, back[4];
  kiln_tensor *tensor = NULL, *again = NULL;
  OK(kiln_tensor_borrow(KILN_F32, 2, lens, NULL, values, NULL, NULL, &tensor));
  OK(kiln_tensor_write(tensor, path));
  OK(kiln_tensor_read(path, &again));
  OK(kiln_tensor_copy_to(again, back, sizeof back));
  CHECK(memcmp(values, back, sizeof back) == 0);
  remove(path);
  kiln_tensor_destroy(again);
  kiln_tensor_destroy(tensor);
}

int main(int count, char** words) {
  test_strings();
  if (count > 1) test_files(words[1]);
  CHECK(count > 1);
  return finish();
}
