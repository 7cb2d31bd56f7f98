#include "kiln/backend/hip/impl/index_call.hpp"

#include <algorithm>

namespace kiln::hip {
namespace {
constexpr int threads = 256;
}

mover::mover(dtype t, std::int64_t contiguous, std::span<const tensor> operands) {
  std::size_t bytes = size_of(t), word = bytes;
  const std::size_t run = static_cast<std::size_t>(contiguous) * bytes;
  const auto fits = [&](std::size_t w) {
    bool all = run % w == 0;
    for (const tensor& o : operands) all = all && reinterpret_cast<std::uintptr_t>(o.data) % w == 0;
    return all;
  };
  while (word < 16 && fits(word * 2)) word *= 2;
  constexpr const char* names[] = {"unsigned char", "unsigned short", "unsigned", "kiln::scalar::u64",
                                   "pack<unsigned, 4>"};
  type = names[word == 1 ? 0 : word == 2 ? 1 : word == 4 ? 2 : word == 8 ? 3 : 4];
  elements = static_cast<std::int64_t>(word / bytes);
}

std::shared_ptr<const function> index_kernel::function_of(const index_call& c) const {
  kernel_text t;
  t.line("#include \"kiln/backend/hip/kernels/", c.header, "\"");
  t.line(prelude({}));
  std::string list;
  for (std::size_t k = 0; k < c.types.size(); ++k) list += c.types[k] + "* p" + std::to_string(k) + ", ";
  t.open_kernel(threads, c.entry, "(", list, "const passed_numbers z, i64 work, int* faults)");
  t.line("const i64* const n = z.at;");
  if (c.lanes == 0) {
    t.line("for (i64 at = blockIdx.x * ", threads, "ll + threadIdx.x; at < work; at += gridDim.x * ", threads, "ll) ",
           c.call, ";");
  } else {
    t.line("const i64 row = blockIdx.x * ", threads / c.lanes, "ll + threadIdx.x / ", c.lanes, ";");
    t.line("const int lane = int(threadIdx.x) % ", c.lanes, ";");
    t.line("if (row < work) ", c.call, ";");
  }
  t.close();
  return *built_.get(t.str(), [&] { return where().build({c.entry, t.str()}); });
}

void index_kernel::run(const launch& l) const {
  std::vector<const std::byte*> pointers;
  for (const tensor& t : l.in) pointers.push_back(t.data);
  for (const tensor& t : l.out) pointers.push_back(t.data);
  pointers.push_back(l.scratch.data());
  for (const index_call& c : calls(l.in, l.out, l.symbols)) {
    if (c.work == 0) continue;
    std::vector<void*> values;
    for (std::size_t k = 0; k < c.types.size(); ++k) values.push_back(&pointers[k]);
    passed_numbers numbers;
    if (c.numbers.size() > most_numbers)
      raise(fault::of(errc::limit, "numbers of a kernel", most_numbers, c.numbers.size()));
    std::copy(c.numbers.begin(), c.numbers.end(), numbers.at);
    std::int64_t work = c.work;
    std::int32_t* faults = l.faults;
    values.push_back(&numbers), values.push_back(&work), values.push_back(&faults);
    const std::int64_t blocks = c.lanes == 0 ? std::min<std::int64_t>((work + threads - 1) / threads, 1 << 20)
                                             : (work * c.lanes + threads - 1) / threads;
    function_of(c)->give(*l.queue, {static_cast<unsigned>(blocks)}, {threads}, 0, values.data());
  }
}

}  // namespace kiln::hip
