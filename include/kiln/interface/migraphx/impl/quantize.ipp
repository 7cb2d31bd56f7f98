#include "kiln/interface/migraphx/quantize.hpp"

#include "kiln/pass/narrow_floats.hpp"

namespace kiln::migraphx {

namespace {

void narrow(program& p, dtype to, const std::vector<std::string>& names) {
  if (p.is_compiled()) raise(errc::invalid_argument, "a program is quantized before it is compiled");
  const std::vector<std::string_view> ops(names.begin(), names.end());
  kiln::program graph = p.graph();
  const pass_note note = narrow_floats(graph, {to, ops});
  std::vector<std::string> remarks;
  for (const text& said : note.remarks) remarks.push_back("narrow_floats: " + said.str());
  p.replace(std::move(graph), remarks);
}

[[noreturn]] void refuse(std::string_view kind) {
  raise(errc::unsupported, "static quantization to " + std::string(kind) +
                               " is not in this version: a model that is quantized already (QuantizeLinear, "
                               "DequantizeLinear) runs as it is, and quantize_fp16 and quantize_bf16 need no data");
}

}  // namespace

void quantize_fp16(program& p, const std::vector<std::string>& names) { narrow(p, dtype::f16, names); }
void quantize_bf16(program& p, const std::vector<std::string>& names) { narrow(p, dtype::bf16, names); }
void quantize_int8(program&, const target&, const quantize_int8_options&) { refuse("int8"); }
void quantize_fp8(program&, const target&, const quantize_fp8_options&) { refuse("fp8"); }

}  // namespace kiln::migraphx
