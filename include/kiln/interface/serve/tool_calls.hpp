#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln::serve {

/// A function that a model's answer calls, with the text of a JSON object.
struct tool_call {
  std::string name, arguments;
};

/// How models write calls: in `<tool_call>` elements (Hermes, Qwen), as a list after `[TOOL_CALLS]` (Mistral), or as
/// the answer's only object (Llama 3), each with `name` and `arguments` or `parameters`.
enum class tool_form { element, list, object };
/// The one that a chat template shows its model.
tool_form tool_form_of(std::string_view chat_template);

/// Divides an answer, as it comes, into text for the reader and calls. What may begin a call is held back.
class tool_reader {
 public:
  explicit tool_reader(tool_form form) : form_(form) {}
  /// The text that a further piece makes certain.
  std::string put(std::string_view piece);
  /// The calls, once all has come; what is none stays text: `rest`.
  std::vector<tool_call> finish(std::string& rest);

 private:
  tool_form form_;
  std::string held_;
  bool is_inside_ = false;  // a call has begun
  bool has_text_ = false;
};

}  // namespace kiln::serve
