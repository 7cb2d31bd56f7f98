#include "kiln/backend/hip/impl/index/index_call.hpp"

#include <algorithm>

namespace kiln::hip {
namespace {

constexpr int threads = 256;
int block_of(const index_call& c) { return std::max(threads, c.lanes); }

class op_kernel final : public index_kernel {
 public:
  op_kernel(const context_pointer& where, const kernel_request& r, const index_family& family, bool clears)
      : index_kernel(where, std::string(r.instruction.op.name())),
        op_(r.instruction.op),
        family_(family),
        clears_(clears) {
    checks_ = family.checks;
    fixed_ = is_fixed(r);
    small_vector<dimension> symbols;
    op_.symbols(symbols);
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
    operation bound = op_;
    if (symbolic_ && symbols) bound.substitute(*symbols);
    std::vector<index_call> all = family_.make(bound, in, out);
    for (index_call& c : all) c.each = family_.each;
    return all;
  }

 private:
  operation op_;
  index_family family_;
  bool clears_, symbolic_ = false;
};

}  // namespace

std::unique_ptr<kernel> make_index_kernel(const context_pointer& where, const kernel_request& r,
                                          const index_family& family, bool clears) {
  return std::make_unique<op_kernel>(where, r, family, clears);
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

void index_kernel::prepare(std::span<const tensor> in, std::span<const tensor> out) const {
  build(calls(in, out, nullptr), in, out);
}
void index_kernel::build(const std::vector<index_call>& calls, std::span<const tensor> in,
                         std::span<const tensor> out) const {
  for (const index_call& c : calls) function_of(c, form_of(c, in, out));
}

call_form index_kernel::form_of(const index_call& c, std::span<const tensor> in, std::span<const tensor> out) const {
  constexpr std::int64_t most_of_int = std::int64_t{1} << 30;
  std::int64_t reach = c.work;
  for (std::span<const tensor> some : {in, out})
    for (const tensor& t : some) {
      std::int64_t places = 1;
      for (std::size_t d = 0; d < t.rank(); ++d)
        places += std::max<std::int64_t>(t.lens[d] - 1, 0) * std::abs(t.strides[d]);
      reach = std::max({reach, places, t.elements()});
    }
  // where there are few elements, more threads are better than more for each
  constexpr std::int64_t few = std::int64_t{1} << 19;
  const int each = !is_written(c) ? 0 : c.work < few ? 1 : c.work < 2 * few ? std::min(c.each, 2) : c.each;
  return {c.lanes == 0 && reach < most_of_int, each};
}

namespace {
// The numbers as a constant of the kernel: words of eight bytes.
void write_numbers(kernel_text& t, const call_numbers& n) {
  std::string words;
  for (std::size_t at = 0; at < n.value.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, n.value.data() + at, 8);
    words += (at == 0 ? "" : ", ") + std::to_string(word) + "ull";
  }
  t.line("struct words { u64 at[", n.value.size() / 8, "]; };");
  t.line("constexpr ", n.type, " n = __builtin_bit_cast(", n.type, ", words{{", words, "}});");
}
}  // namespace

std::string call_text(const index_call& c, const call_form& how) {
  kernel_text t;
  t.line("#include \"kiln/backend/hip/kernels/", c.header, "\"");
  t.line(kernel_text::prelude());
  std::string list;
  // nothing is read through one pointer after it was written through another: results and scratch memory lie apart from
  // operands and from one another, and where an operand and a result are the same place, a thread alone reads what it
  // writes there, and before
  for (std::size_t k = 0; k < c.types.size(); ++k) list += c.types[k] + "* __restrict__ p" + std::to_string(k) + ", ";
  if (!c.numbers.type.empty() && !how.written()) list += "const " + c.numbers.type + " n, ";
  const std::string together = c.cluster <= 1 ? "" : "__cluster_dims__(" + std::to_string(c.cluster) + ", 1, 1) ";
  t.open_kernel(c.cluster == 0 ? block_of(c) : c.lanes, together, c.entry, "(", list, "i64 work, int* __restrict__ ",
                c.lanes == 0 ? "faulted)" : "faults)");
  // a thread notes a fault in a register, since a branch to memory would part the reads of its elements
  if (c.lanes == 0) t.line("int fault = 0, *const faults = &fault;");
  if (c.shared_bytes != 0) t.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
  if (c.cluster != 0) {
    t.line(c.call, ";");
  } else if (how.written()) {
    if (!c.numbers.type.empty()) write_numbers(t, c.numbers);
    t.line("using index = ", how.narrow ? "int" : "i64", ";");
    t.line("constexpr index all = ", c.work, ";");
    t.line("const index first = index(blockIdx.x) * ", threads * how.each, " + index(threadIdx.x);");
    // reads of all elements come first where all of them exist
    t.open("if (first + ", threads * (how.each - 1), " < all)");
    t.line("KILN_UNROLL");
    t.open("for (int u = 0; u < ", how.each, "; ++u)");
    t.line("const index at = first + u * ", threads, ";");
    t.line(c.call, ";");
    t.close();
    t.close();
    t.open("else");
    t.line("KILN_NO_UNROLL");
    t.line("for (index at = first; at < all; at += ", threads, ") ", c.call, ";");
    t.close();
  } else if (c.lanes == 0) {
    t.line("for (i64 next = blockIdx.x * ", threads, "ll + threadIdx.x; next < work; next += gridDim.x * ", threads,
           "ll) {");
    t.line("const ", how.narrow ? "int" : "i64", " at = next;");
    t.line(c.call, ";");
    t.close();
  } else {
    t.line("const i64 row = blockIdx.x * ", block_of(c) / c.lanes, "ll + threadIdx.x / ", c.lanes, ";");
    t.line("const int lane = int(threadIdx.x) % ", c.lanes, ";");
    t.line("if (row < work) ", c.call, ";");
  }
  if (c.lanes == 0) t.line("if (fault != 0) *faulted = 1;");
  t.close();
  return t.str();
}

std::shared_ptr<const function> index_kernel::function_of(const index_call& c, const call_form& how) const {
  const std::string text = call_text(c, how);
  return *built_.get(text, [&] { return where().build({c.entry, text, false, c.short_results}); });
}

bool index_kernel::has_room(const index_call& c) const {
  return !where().calls() ||
         function_of(c, {})->has_room_for_cluster(c.cluster, c.lanes, static_cast<std::size_t>(c.shared_bytes));
}

void index_kernel::run(const launch& l) const {
  const std::byte* const room = l.scratch.data();
  give(l, calls(l.in, l.out, l.symbols), {&room, 1});
}

void index_kernel::give(const launch& l, const std::vector<index_call>& calls,
                        std::span<const std::byte* const> rooms) const {
  std::vector<const std::byte*> pointers;
  for (const tensor& t : l.in) pointers.push_back(t.data);
  for (const tensor& t : l.out) pointers.push_back(t.data);
  pointers.insert(pointers.end(), rooms.begin(), rooms.end());
  for (const index_call& c : calls) {
    if (c.work == 0) continue;
    std::vector<void*> values;
    for (std::size_t k = 0; k < c.types.size(); ++k) values.push_back(&pointers[k]);
    const call_form how = form_of(c, l.in, l.out);
    std::vector<std::byte> numbers = c.numbers.value;
    if (!numbers.empty() && !how.written()) values.push_back(numbers.data());
    std::int64_t work = c.work;
    std::int32_t* faults = l.faults;
    values.push_back(&work), values.push_back(&faults);
    if (c.cluster != 0) {
      function_of(c, how)->give(*l.queue, {static_cast<unsigned>(work * c.cluster)}, {static_cast<unsigned>(c.lanes)},
                                static_cast<std::size_t>(c.shared_bytes), values.data());
      continue;
    }
    const std::int64_t part = how.written() ? threads * how.each : threads;
    const std::int64_t blocks = how.written()  ? (work + part - 1) / part
                                : c.lanes == 0 ? std::min<std::int64_t>((work + part - 1) / part, 1 << 20)
                                               : (work * c.lanes + block_of(c) - 1) / block_of(c);
    function_of(c, how)->give(*l.queue, {static_cast<unsigned>(blocks)}, {static_cast<unsigned>(block_of(c))},
                              static_cast<std::size_t>(c.shared_bytes), values.data());
  }
}

}  // namespace kiln::hip
