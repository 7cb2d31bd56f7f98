#include "kiln/backend/hip/impl/index/index_call.hpp"

#include <algorithm>

namespace kiln::hip {
namespace {

constexpr int threads = 256;

class op_kernel final : public index_kernel {
 public:
  op_kernel(const context_pointer& where, const operation& op, const index_family& family, bool clears)
      : index_kernel(where, std::string(op.name())), op_(op), family_(family), clears_(clears) {
    checks_ = family.checks;
    small_vector<dimension> symbols;
    op.symbols(symbols);
    symbolic_ = !symbols.empty();
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return family_.room ? family_.room(op_, in, out) : 0;
  }
  void run(const launch& l) const override {
    if (clears_ && !l.scratch.empty()) l.queue->fill(l.scratch.data(), 0, scratch_bytes(l.in, l.out, 1));
    index_kernel::run(l);
  }

 protected:
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings* symbols) const override {
    if (!symbolic_ || !symbols) return family_.make(op_, in, out);
    operation bound = op_;
    bound.substitute(*symbols);
    return family_.make(bound, in, out);
  }

 private:
  operation op_;
  index_family family_;
  bool clears_, symbolic_ = false;
};

}  // namespace

std::unique_ptr<kernel> make_index_kernel(const context_pointer& where, const operation& op, const index_family& family,
                                          bool clears) {
  return std::make_unique<op_kernel>(where, op, family, clears);
}

std::string_view word_name(std::size_t bytes) {
  switch (bytes) {
    case 1: return "unsigned char";
    case 2: return "unsigned short";
    case 4: return "unsigned";
    case 8: return "kiln::scalar::u64";
    default: return "pack<unsigned, 4>";
  }
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
  type = word_name(word);
  elements = static_cast<std::int64_t>(word / bytes);
}

std::shared_ptr<const function> index_kernel::function_of(const index_call& c) const {
  kernel_text t;
  t.line("#include \"kiln/backend/hip/kernels/", c.header, "\"");
  t.line(kernel_text::prelude());
  std::string list;
  for (std::size_t k = 0; k < c.types.size(); ++k) list += c.types[k] + "* p" + std::to_string(k) + ", ";
  if (!c.numbers.type.empty()) list += "const " + c.numbers.type + " n, ";
  const std::string together = c.cluster == 0 ? "" : "__cluster_dims__(" + std::to_string(c.cluster) + ", 1, 1) ";
  t.open_kernel(c.cluster == 0 ? threads : c.lanes, together, c.entry, "(", list, "i64 work, int* faults)");
  if (c.cluster != 0) {
    t.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
    t.line(c.call, ";");
  } else if (c.lanes == 0) {
    t.line("for (i64 at = blockIdx.x * ", threads, "ll + threadIdx.x; at < work; at += gridDim.x * ", threads, "ll) ",
           c.call, ";");
  } else {
    t.line("const i64 row = blockIdx.x * ", threads / c.lanes, "ll + threadIdx.x / ", c.lanes, ";");
    t.line("const int lane = int(threadIdx.x) % ", c.lanes, ";");
    t.line("if (row < work) ", c.call, ";");
  }
  t.close();
  return *built_.get(t.str(), [&] { return where().build({c.entry, t.str(), false, c.short_results}); });
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
    std::vector<std::byte> numbers = c.numbers.value;
    if (!numbers.empty()) values.push_back(numbers.data());
    std::int64_t work = c.work;
    std::int32_t* faults = l.faults;
    values.push_back(&work), values.push_back(&faults);
    if (c.cluster != 0) {
      function_of(c)->give(*l.queue, {static_cast<unsigned>(work * c.cluster)}, {static_cast<unsigned>(c.lanes)},
                           static_cast<std::size_t>(c.shared_bytes), values.data());
      continue;
    }
    const std::int64_t blocks = c.lanes == 0 ? std::min<std::int64_t>((work + threads - 1) / threads, 1 << 20)
                                             : (work * c.lanes + threads - 1) / threads;
    function_of(c)->give(*l.queue, {static_cast<unsigned>(blocks)}, {threads}, 0, values.data());
  }
}

}  // namespace kiln::hip
