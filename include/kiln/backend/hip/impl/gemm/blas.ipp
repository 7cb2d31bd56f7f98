#include "kiln/backend/hip/impl/gemm/blas.hpp"

#include <map>
#include <memory>
#include <mutex>

#include "kiln/backend/hip/impl/runtime/library.hpp"
#include "kiln/core/error.hpp"

namespace kiln::hip {
namespace {

// cuBLASLt's calls and the constants of them that are used, by their names there.
struct heuristic_result {
  std::array<std::uint64_t, 8> algorithm;
  std::size_t scratch_bytes;
  int state;
  float waves;
  int reserved[4];
};
struct blas_calls {
  int (*cublasLtCreate)(void**) = nullptr;
  int (*cublasLtMatmulDescCreate)(void**, int compute, int scale) = nullptr;
  int (*cublasLtMatmulDescDestroy)(void*) = nullptr;
  int (*cublasLtMatmulDescSetAttribute)(void*, int, const void*, std::size_t) = nullptr;
  int (*cublasLtMatrixLayoutCreate)(void**, int type, std::uint64_t rows, std::uint64_t cols, std::int64_t) = nullptr;
  int (*cublasLtMatrixLayoutDestroy)(void*) = nullptr;
  int (*cublasLtMatrixLayoutSetAttribute)(void*, int, const void*, std::size_t) = nullptr;
  int (*cublasLtMatmulPreferenceCreate)(void**) = nullptr;
  int (*cublasLtMatmulPreferenceDestroy)(void*) = nullptr;
  int (*cublasLtMatmulPreferenceSetAttribute)(void*, int, const void*, std::size_t) = nullptr;
  int (*cublasLtMatmulAlgoGetHeuristic)(void*, void*, void*, void*, void*, void*, void*, int, heuristic_result*,
                                        int*) = nullptr;
  int (*cublasLtMatmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                        void*, void*, void*, const void*, void*, std::size_t, void*) = nullptr;
};
constexpr int f32 = 0, f16 = 2, bf16 = 14, compute_f32 = 68, transpose_a = 3, transpose_b = 4;
constexpr int batch_count = 5, batch_step = 6, most_scratch = 1, alignment_a = 5, alignment_d = 8;

const blas_calls* find_calls() {
  static const std::unique_ptr<blas_calls> calls = []() -> std::unique_ptr<blas_calls> {
    library from({"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                  "/usr/local/cuda/lib64/libcublasLt.so.12"});
    auto made = std::make_unique<blas_calls>();
    bool all = true;
#define KILN_CALL(name) all = from.find(made->name, #name) && all
    KILN_CALL(cublasLtCreate);
    KILN_CALL(cublasLtMatmulDescCreate);
    KILN_CALL(cublasLtMatmulDescDestroy);
    KILN_CALL(cublasLtMatmulDescSetAttribute);
    KILN_CALL(cublasLtMatrixLayoutCreate);
    KILN_CALL(cublasLtMatrixLayoutDestroy);
    KILN_CALL(cublasLtMatrixLayoutSetAttribute);
    KILN_CALL(cublasLtMatmulPreferenceCreate);
    KILN_CALL(cublasLtMatmulPreferenceDestroy);
    KILN_CALL(cublasLtMatmulPreferenceSetAttribute);
    KILN_CALL(cublasLtMatmulAlgoGetHeuristic);
    KILN_CALL(cublasLtMatmul);
#undef KILN_CALL
    return all ? std::move(made) : nullptr;
  }();
  return calls.get();
}

// One for each device, for as long as the program runs; any number of threads may use it.
void* handle_of(const blas_calls& calls, int device) {
  static std::mutex lock;
  static std::map<int, void*> handles;
  const std::lock_guard guard(lock);
  void*& handle = handles[device];
  if (!handle && calls.cublasLtCreate(&handle) != 0) handle = nullptr;
  return handle;
}

}  // namespace

std::shared_ptr<const blas_gemm> blas_gemm::find(const gemm_problem& p, const context& where) {
  if (!where.calls() || where.arch().on != platform::nvidia) return nullptr;
  if (p.pixels != 0 || p.batch0 != 1 || p.steps[0][3] != 1 || p.types[0] != p.type || p.aligned[0] < 16) return nullptr;
  if ((p.type != dtype::f16 && p.type != dtype::bf16) || p.a.vector != 8 || p.b.vector != 8) return nullptr;
  const blas_calls* calls = find_calls();
  if (!calls || where.calls()->hipSetDevice(where.index()) != 0) return nullptr;
  auto made = std::make_shared<blas_gemm>();
  made->handle_ = handle_of(*calls, where.index());
  if (!made->handle_) return nullptr;

  // columns come first there, so the product is the transposed one: b's columns times a's rows
  bool well = true;
  const auto keep = [&](int code, void* at, int (*close)(void*)) {
    well = well && code == 0;
    return owned(code == 0 ? at : nullptr, {close});
  };
  void* at = nullptr;
  int code = calls->cublasLtMatmulDescCreate(&at, compute_f32, f32);
  made->product_ = keep(code, at, calls->cublasLtMatmulDescDestroy);
  const auto layout = [&](std::int64_t rows, std::int64_t cols, std::int64_t step, std::int64_t each) {
    void* made_layout = nullptr;
    const int created =
        calls->cublasLtMatrixLayoutCreate(&made_layout, p.type == dtype::f16 ? f16 : bf16,
                                          static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), step);
    owned out = keep(created, made_layout, calls->cublasLtMatrixLayoutDestroy);
    const auto count = static_cast<int>(p.batch1);
    if (well && count > 1)
      well = calls->cublasLtMatrixLayoutSetAttribute(out.get(), batch_count, &count, sizeof count) == 0 &&
             calls->cublasLtMatrixLayoutSetAttribute(out.get(), batch_step, &each, sizeof each) == 0;
    return out;
  };
  const auto factor = [&](const gemm_factor& f, std::int64_t extent, bool extent_first, int attribute) {
    const auto& m = std::get<matrix_argument>(f.value);
    const bool turned = f.depth_contiguous == extent_first;
    const int operation = turned ? 1 : 0;
    well = well &&
           calls->cublasLtMatmulDescSetAttribute(made->product_.get(), attribute, &operation, sizeof operation) == 0;
    return f.depth_contiguous ? layout(p.depth, extent, m.row_step, m.batch[1])
                              : layout(extent, p.depth, m.depth_step, m.batch[1]);
  };
  if (!well) return nullptr;
  made->left_ = factor(p.b, p.cols, true, transpose_a);
  made->right_ = factor(p.a, p.rows, false, transpose_b);
  made->result_ = layout(p.cols, p.rows, p.steps[0][2], p.steps[0][1]);

  code = calls->cublasLtMatmulPreferenceCreate(&at);
  const owned preference = keep(code, at, calls->cublasLtMatmulPreferenceDestroy);
  const std::size_t most = std::size_t{32} << 20;
  const std::uint32_t aligned = 16;
  if (well) calls->cublasLtMatmulPreferenceSetAttribute(preference.get(), most_scratch, &most, sizeof most);
  for (int which = alignment_a; well && which <= alignment_d; ++which)
    calls->cublasLtMatmulPreferenceSetAttribute(preference.get(), which, &aligned, sizeof aligned);
  heuristic_result best{};
  int found = 0;
  if (!well ||
      calls->cublasLtMatmulAlgoGetHeuristic(made->handle_, made->product_.get(), made->left_.get(), made->right_.get(),
                                            made->result_.get(), made->result_.get(), preference.get(), 1, &best,
                                            &found) != 0 ||
      found == 0 || best.state != 0)
    return nullptr;
  made->algorithm_ = best.algorithm;
  made->scratch_bytes_ = best.scratch_bytes;
  return made;
}

bool blas_gemm::is_asked(const gemm_problem& plain, const row_program* epilogue, const architecture& where) {
  // the result is written and read once more for 4 bytes an element, which a product of this depth makes up for
  constexpr std::int64_t least_depth = 512, least_products = std::int64_t{1} << 33;
  gemm_problem p = plain;
  if (p.depth < least_depth || p.rows * p.cols * p.batch1 < least_products / p.depth) return false;
  p.work = work_of(epilogue);  // by which the tile is chosen, too
  return !epilogue || !tiles_for(p, where).front().persistent();
}

bool blas_gemm::run(device_queue& queue, std::span<std::byte> scratch, const void* a, const void* b,
                    void* result) const {
  void* room = scratch.data();
  std::size_t space = scratch.size();
  if (scratch_bytes_ != 0 && !std::align(scratch_aligned, scratch_bytes_, room, space)) return false;
  const float one = 1, zero = 0;
  const int code = find_calls()->cublasLtMatmul(handle_, product_.get(), &one, b, left_.get(), a, right_.get(), &zero,
                                                result, result_.get(), result, result_.get(), algorithm_.data(),
                                                scratch_bytes_ == 0 ? nullptr : room, scratch_bytes_, queue.stream());
  constexpr int invalid_value = 7, not_supported = 15;
  if (code == invalid_value || code == not_supported) return false;
  if (code != 0) raise(errc::internal, "cublasLtMatmul: status " + std::to_string(code));
  return true;
}

}  // namespace kiln::hip
