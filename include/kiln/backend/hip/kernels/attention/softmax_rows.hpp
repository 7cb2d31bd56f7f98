#pragma once
#include "kiln/backend/hip/kernels/atom/atom_mma.hpp"
#include "kiln/backend/hip/kernels/attention/attention.hpp"

namespace kiln::gpu {

/// An element of a mask.
template <class T, mask_kind Mask> struct mask_element { using type = T; };
template <class T> struct mask_element<T, mask_kind::keeps> { using type = bool; };

/// The rows of a warp in a running softmax, with scores where atom_mma sums them: slot 2 m + h of a lane is row
/// lane / 4 + 8 h of atom m.
template <class T, int AtomsM> struct softmax_rows {
  using scores_of_atom = typename atom_mma<T>::accumulator;
  static constexpr int count = 2 * AtomsM;
  int query[count], head[count];
  float top[count], total[count];  // the greatest score in the base of exp2, and what the weights sum to

  /// `first` is the warp's first row in its group.
  KILN_FN softmax_rows(const attention_sizes& s, int kv_head, int first, int all_rows) {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      const int row = first + r / 2 * 16 + r % 2 * 8 + lane_index() / 4;
      const attention_row at = row_of(s, kv_head, row < all_rows ? row : all_rows - 1);
      query[r] = at.query, head[r] = at.head;
      top[r] = hidden_score, total[r] = 0;
    }
  }

  /// Scores of the keys from `j0` on, of which those before `end` exist, become weights; what was summed with earlier
  /// ones is to be multiplied by `shrink`. Where `window` is not 0, a row sees that many keys at most.
  template <mask_kind Mask, bool Causal, int KeyAtoms>
  KILN_FN void weigh(scores_of_atom (&scores)[AtomsM][KeyAtoms], float (&shrink)[count], const attention_sizes& s,
                     const epilogue_operand& mask, int batch, int j0, int end, int window = 0) {
    const int last = j0 + KeyAtoms * 16 - 1, ahead = s.keys - s.queries;
    bool all = last < end;  // but for a mask, each row sees all of these keys
    KILN_UNROLL
    for (int r = 0; r < count; ++r)
      all = all && (!Causal || last <= query[r] + ahead) && (window == 0 || j0 > query[r] + ahead - window);
    float factor = 1;
    if (Mask == mask_kind::none && all && s.scale > 0) {
      factor = s.scale * log2_e;
    } else if (Mask != mask_kind::none && all && lies_in_pairs<Mask>(mask)) {
      if (is_alike(mask))
        mask_pairs<Mask, true>(scores, s, mask, batch, j0);
      else
        mask_pairs<Mask, false>(scores, s, mask, batch, j0);
      factor = log2_e;
    } else {
      hide<Mask, Causal>(scores, s, mask, batch, j0, end, window);
    }
    weigh_all(scores, shrink, factor);
  }

  /// Whether a mask's values for neighboring keys, from an even one on, are one load.
  template <mask_kind Mask> static KILN_FN bool lies_in_pairs(const epilogue_operand& mask) {
    constexpr i64 pair = 2 * sizeof(typename mask_element<T, Mask>::type);
    return mask.step[3] == 1 && reinterpret_cast<i64>(mask.base) % pair == 0 &&
           (mask.step[0] | mask.step[1] | mask.step[2]) % 2 == 0;
  }
  /// Whether all rows of this lane have the same mask.
  KILN_FN bool is_alike(const epilogue_operand& mask) const {
    bool alike = mask.step[2] == 0;
    KILN_UNROLL
    for (int r = 1; r < count; ++r) alike = alike && (mask.step[1] == 0 || head[r] == head[0]);
    return alike;
  }
  /// Scores of keys that a mask alone hides become those after it, times the scale. Its values come in pairs, for
  /// several atoms before any is used, since a branch or a use for each waits for each load.
  template <mask_kind Mask, bool Alike, int KeyAtoms>
  KILN_FN void mask_pairs(scores_of_atom (&scores)[AtomsM][KeyAtoms], const attention_sizes& s,
                          const epilogue_operand& mask, int batch, int j0) const {
    using element = typename mask_element<T, Mask>::type;
    constexpr int together = KeyAtoms < 4 ? KeyAtoms : 4, rows = Alike ? 1 : count;
    static_assert(KeyAtoms % together == 0);
    const element* from[rows];
    KILN_UNROLL
    for (int r = 0; r < rows; ++r)
      from[r] = static_cast<const element*>(mask.base) +
                (batch * mask.step[0] + head[r] * mask.step[1] + query[r] * mask.step[2] + j0 + lane_index() % 4 * 2);
    KILN_UNROLL
    for (int n0 = 0; n0 < KeyAtoms; n0 += together) {
      held_run<element, 2> values[rows][together][2];
      KILN_UNROLL
      for (int r = 0; r < rows; ++r) KILN_UNROLL
      for (int n = 0; n < together; ++n) KILN_UNROLL
      for (int half = 0; half < 2; ++half) values[r][n][half].read(from[r] + (n0 + n) * 16 + half * 8);
      KILN_UNROLL
      for (int r = 0; r < count; ++r) KILN_UNROLL
      for (int n = 0; n < together; ++n) KILN_UNROLL
      for (int half = 0; half < 2; ++half) {
        const held_run<element, 2>& two = values[Alike ? 0 : r][n][half];
        float &low = score(scores, r, n0 + n, 2 * half), &high = score(scores, r, n0 + n, 2 * half + 1);
        if constexpr (Mask == mask_kind::keeps) {
          low = two.at(0) ? low * s.scale : hidden_score, high = two.at(1) ? high * s.scale : hidden_score;
        } else {  // rounded as `masked_score` is
          held_run<T, 2> sums;
          sums.words[0] = two_narrow<T>(low * s.scale + widen(two.at(0)), high * s.scale + widen(two.at(1)));
          low = widen(sums.at(0)), high = widen(sums.at(1));
        }
      }
    }
  }

  /// Scores become those after the mask, in the base of exp2, as `weigh` has them.
  template <mask_kind Mask, bool Causal, int KeyAtoms>
  KILN_FN void hide(scores_of_atom (&scores)[AtomsM][KeyAtoms], const attention_sizes& s, const epilogue_operand& mask,
                    int batch, int j0, int end, int window = 0) const {
    const int ahead = s.keys - s.queries;
    KILN_UNROLL
    for (int m = 0; m < AtomsM; ++m) KILN_UNROLL
    for (int n = 0; n < KeyAtoms; ++n) KILN_UNROLL
    for (int e = 0; e < 8; ++e) {
      const int j = j0 + n * 16 + atom_mma<T>::c_at(lane_index(), e).depth, r = 2 * m + e / 2 % 2;
      const bool seen = j < end && (!Causal || j <= query[r] + ahead) && (window == 0 || j > query[r] + ahead - window);
      // read in any case: a branch around each load would wait for each
      const i64 at = batch * mask.step[0] + head[r] * mask.step[1] + query[r] * mask.step[2] +
                     (j < end ? j : end - 1) * mask.step[3];
      const float masked = masked_score<T, Mask>(scores[m][n].at[e], s, mask, at);
      scores[m][n].at[e] = seen ? masked : hidden_score;
    }
  }

  /// Scores, of which none is hidden and `factor` is positive, or which are `hide`'s and it is 1, or `mask_pairs`' and
  /// it is the binary logarithm of e, become weights.
  template <int KeyAtoms>
  KILN_FN void weigh_all(scores_of_atom (&scores)[AtomsM][KeyAtoms], float (&shrink)[count], float factor) {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      // two chains each: few warps share a scheduler
      float part[2] = {hidden_score, hidden_score};
      KILN_UNROLL
      for (int n = 0; n < KeyAtoms; ++n) KILN_UNROLL
      for (int e = 0; e < 4; ++e) part[e % 2] = greater_or_nan(score(scores, r, n, e), part[e % 2]);
      float high = greater_or_nan(part[0], part[1]) * factor;
      for (int x = 1; x < 4; x *= 2) high = greater_or_nan(shuffle_xor(high, x), high);
      // sums are rescaled only where a score is far above the base: weights up to 2^8 lose nothing
      // (FlashAttention-4, Zadouri et al. 2026)
      constexpr float far = 8;
      if (!(high <= top[r] + far)) {
        high = greater_or_nan(top[r], high);
        shrink[r] = exp2_device(top[r] - high);
        top[r] = high;
      } else {
        shrink[r] = 1;
      }
      const float base = top[r] == hidden_score ? 0 : top[r];
      float sum[2] = {};
      KILN_UNROLL
      for (int n = 0; n < KeyAtoms; ++n) KILN_UNROLL
      for (int e = 0; e < 4; ++e) {
        float& x = score(scores, r, n, e);
        x = exp2_device(KILN_LIBM(fmaf)(x, factor, -base));
        sum[e % 2] += x;
      }
      total[r] = total[r] * shrink[r] + (sum[0] + sum[1]);
    }
  }

  /// Element e of slot r in atom n: of scores, or of sums.
  template <int Atoms> static KILN_FN float& score(scores_of_atom (&of)[AtomsM][Atoms], int r, int n, int e) {
    return of[r / 2][n].at[e / 2 * 4 + r % 2 * 2 + e % 2];
  }

  /// Multiplies what was summed by `shrink`.
  template <int Atoms> static KILN_FN void scale(scores_of_atom (&sums)[AtomsM][Atoms], const float (&shrink)[count]) {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) KILN_UNROLL
    for (int n = 0; n < Atoms; ++n) KILN_UNROLL
    for (int e = 0; e < 4; ++e) score(sums, r, n, e) *= shrink[r];
  }

  /// Totals of whole rows, when all keys were seen.
  KILN_FN void join_totals() {
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      total[r] += shuffle_xor(total[r], 1);
      total[r] += shuffle_xor(total[r], 2);
    }
  }

  /// Writes a warp's rows of the result, `first` the first of them: through `staged`, rows of `Step` elements in shared
  /// memory, so that they leave in long runs.
  template <int Depth, int Vector, int Step, int Atoms>
  KILN_FN void store(const attention_operand<T>& out, const attention_sizes& s, int batch, int kv_head, int first,
                     int all_rows, scores_of_atom (&sums)[AtomsM][Atoms], T* staged) const {
    const int lane = lane_index();
    KILN_UNROLL
    for (int r = 0; r < count; ++r) {
      const float by = total[r] == 0 ? 0 : 1 / total[r];
      T* to = staged + (r / 2 * 16 + r % 2 * 8 + lane / 4) * Step;
      KILN_UNROLL
      for (int n = 0; n < Atoms; ++n) KILN_UNROLL
      for (int e = 0; e < 4; e += 2)
        *reinterpret_cast<u32*>(to + n * 16 + e / 2 * 8 + lane % 4 * 2) =
            two_narrow<T>(score(sums, r, n, e) * by, score(sums, r, n, e + 1) * by);
    }
    sync_warp();
    constexpr int line = Depth / Vector;
    for (int c = lane; c < AtomsM * 16 * line; c += 32) {
      const int r = c / line, d = c % line * Vector, row = first + r;
      if (row >= all_rows || d >= s.value_depth) continue;
      const attention_row at = row_of(s, kv_head, row);
      T* to = out.base + batch * out.batch + at.head * out.head + at.query * out.row + d;
      if (d + Vector <= s.value_depth) {
        using run = pack<T, Vector>;
        *reinterpret_cast<run*>(to) = *reinterpret_cast<const run*>(staged + r * Step + d);
      } else {
        for (int e = 0; d + e < s.value_depth; ++e) to[e] = staged[r * Step + d + e];
      }
    }
  }
};

}  // namespace kiln::gpu
