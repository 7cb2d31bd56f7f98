#pragma once
#include "kiln/config.hpp"

namespace kiln {

namespace elementary {

template <class A, class B> inline constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;
template <class T> struct bare { using type = T; };
template <class T> struct bare<T&> { using type = T; };
template <class T> struct bare<T&&> { using type = T; };
template <class T> struct bare<const T> { using type = T; };
template <class T> struct bare<const T&> { using type = T; };

#if KILN_HAS_VECTORS
template <class E, int Bytes> struct vector_of { typedef E type __attribute__((vector_size(Bytes))); };
#else
template <class E, int Bytes> struct vector_of;
#endif

template <class T>
inline constexpr bool is_integer = same<T, char> || same<T, signed char> || same<T, unsigned char> || same<T, short> ||
                                   same<T, unsigned short> || same<T, int> || same<T, unsigned> || same<T, long> ||
                                   same<T, unsigned long> || same<T, long long> || same<T, unsigned long long>;

}  // namespace elementary

/// True of a compiler vector (GNU vector extension).
template <class V>
concept is_vec = (KILN_HAS_VECTORS != 0) && !__is_class(V) && requires(V v) {
  v + v;
  (v < v)[0];
};

/// True of a type that records calls instead of computing, such as `kiln::expr`.
template <class T>
concept recorder = requires {
  typename T::records_calls;
};

namespace elementary {
template <class T> struct element { using type = T; };
template <is_vec V> struct element<V> { using type = typename bare<decltype(V{}[0])>::type; };
}  // namespace elementary

/// The scalar type of a vector's lanes; a scalar's own type.
template <class T> using element_t = typename elementary::element<T>::type;

/// Number of lanes of a vector; 1 for a scalar.
template <class T> inline constexpr int lanes = sizeof(T) / sizeof(element_t<T>);

/// float, double, or a vector of them.
template <class T>
concept floating = elementary::same < element_t<T>,
float > || elementary::same<element_t<T>, double>;

/// A built-in integer (bool excluded) or a vector of them.
template <class T>
concept integral = elementary::is_integer<element_t<T>>;

/// A class that stands for a float by conversion both ways, such as `half`.
template <class T>
concept narrow_float = __is_class(T) && !recorder<T> && requires(T x) {
  static_cast<float>(x);
  T(1.0f);
};

namespace elementary {

template <class T, class E> struct rebind { using type = E; };
template <is_vec V, class E> struct rebind<V, E> { using type = typename vector_of<E, sizeof(E) * lanes<V>>::type; };
template <int Bytes> struct unsigned_of { using type = scalar::u64; };
template <> struct unsigned_of<4> { using type = scalar::u32; };
template <> struct unsigned_of<2> { using type = unsigned short; };
template <> struct unsigned_of<1> { using type = unsigned char; };
template <class T> struct mask { using type = bool; };
template <is_vec V> struct mask<V> { using type = decltype(V{} < V{}); };
template <recorder T> struct mask<T> { using type = T; };

}  // namespace elementary

/// `T` with its lanes replaced by `E` (the number of lanes kept); `E` for a scalar.
template <class T, class E> using rebind_t = typename elementary::rebind<T, E>::type;

/// The unsigned integer (vector) with as many bits a lane as `T`.
template <class T> using bits_t = rebind_t<T, typename elementary::unsigned_of<sizeof(element_t<T>)>::type>;

/// What comparing two `T` gives: bool, a vector of 0 and -1, or the recorder itself.
template <class T> using mask_t = typename elementary::mask<T>::type;

}  // namespace kiln
