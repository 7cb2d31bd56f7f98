#pragma once
#include "kiln/core/math/exp.hpp"

namespace kiln {

/// Error function: error below 6 ulp (4e-7) for float, 2 ulp for double; never beyond 1, which it reaches. A float
/// takes one rational function (own minimax fit, 7e-9) and one division.
template <class T> KILN_FN constexpr T erf(T x) {
  if constexpr (recorder<T>)
    return T::call("erf", x);
  else if constexpr (narrow_float<T>)
    return T(erf(static_cast<float>(x)));
  else {
    static_assert(floating<T>, "erf needs a floating type: convert integers first");
    using namespace elementary;
    if (constant_nan(x)) return x;
    if constexpr (is_f32<T>) {
      const T c = within(x, -3.93, 3.93), z = c * c;
      const T p = polynomial(z, 1.1283791670882997, 0.19267570354848144, 0.055250502136210099, 0.0041537223998083914,
                             0.00038906833538171839, 5.9594271193026797e-6);
      const T q = polynomial(z, 1.0, 0.50408773382888442, 0.11699365030247937, 0.016080125049717174,
                             0.0013772531076333195, 6.6485237861063864e-5, 2.1511230145599999e-7);
      return within(c * p / q, -1.0, 1.0);
    } else {
      const T a = within(abs(x), 0.0, 6.0), z = a * a, two = splat<T>(2), one = splat<T>(1);
      const T near =
          a * polynomial(z, 1.12837916709551257, -0.376126389031837476, 0.112837916709548575, -0.0268661706450728969,
                         0.00522397762478088675, -0.000854832697874336571, 0.000120553310369413514,
                         -0.0000149255935078630228, 1.64609728319918235e-6, -1.63500253735230811e-7,
                         1.46578808003991058e-8, -1.13656694383992391e-9, 5.9452672408436999e-11);
      // 1 - e^(-x^2) erfcx(x), the latter a polynomial of (x - 2) / (x + 2)
      const T scaled = polynomial((a - two) / (a + two), 0.255395676310505752, -0.427185847413958375,
                                  0.241658194242454985, -0.0789785810158628395, 0.00373289240593700596,
                                  0.00699746176630905898, -0.000847143239867978862, -0.000981978429312568259,
                                  0.0000435497666266605974, 0.000174377272791336696, 0.0000276805395324466519,
                                  -0.0000273587798289245379, -0.0000147867803618890882, -1.80079797411070662e-6);
      return copysign(select(a < one, near, one - exp(-z) * scaled), x);
    }
  }
}

}  // namespace kiln
