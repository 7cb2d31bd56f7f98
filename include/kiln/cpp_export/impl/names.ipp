#include <algorithm>
#include <cctype>

#include "kiln/cpp_export/impl/names.hpp"

namespace kiln::aot {

namespace {

std::set<std::string, std::less<>> words_of(std::string_view list) {
  std::set<std::string, std::less<>> words;
  for (std::size_t end = 0; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
    end = std::min(list.find(' '), list.size());
    words.emplace(list.substr(0, end));
  }
  return words;
}

}  // namespace

const std::set<std::string, std::less<>>& cpp_words() {
  static const auto words = words_of(
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
      "class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
      "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
      "goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
      "protected public register reinterpret_cast requires return short signed sizeof static static_assert "
      "static_cast struct switch template this thread_local throw true try typedef typeid typename union "
      "unsigned using virtual void volatile wchar_t while xor xor_eq");
  return words;
}

const std::set<std::string, std::less<>>& c_names() {
  static const auto names = words_of(
      "BUFSIZ DOMAIN EOF FILE FILENAME_MAX FOPEN_MAX HUGE HUGE_VAL INFINITY MATH_ERREXCEPT MATH_ERRNO MAXFLOAT "
      "NAN NULL OVERFLOW PLOSS RAND_MAX SEEK_CUR SEEK_END SEEK_SET SING TLOSS TMP_MAX UNDERFLOW abort abs acos "
      "acosh asin asinh assert atan atan2 atanh atexit atof atoi atol bsearch calloc cbrt ceil clearerr "
      "copysign cos cosh ctermid div div_t double_t dprintf drem erf erfc errno exit exp exp10 exp2 expm1 fabs "
      "fclose fdim feof ferror fflush fgetc fgets fileno finite float_t floor fma fmax fmin fmod fopen fpos_t "
      "fprintf fputc fputs fread free freopen frexp fscanf fseek ftell fwrite gamma getc getchar getdelim "
      "getenv getline getw hypot ilogb int16_t int32_t int64_t int8_t intmax_t intptr_t isinf isnan j0 j1 jn "
      "labs ldexp ldiv ldiv_t lgamma linux llabs lldiv lldiv_t llrint llround log log10 log1p log2 logb lrint "
      "lround malloc math_errhandling max_align_t modf nan nearbyint nextafter nexttoward nullptr_t off_t "
      "pclose perror popen pow pow10 printf ptrdiff_t putc putchar puts putw qsort rand random realloc "
      "remainder remove remquo rename renameat rewind rint round scalb scalbln scalbn scanf setbuf setvbuf "
      "signgam significand sin sincos sinh size_t snprintf sprintf sqrt srand sscanf ssize_t stderr stdin "
      "stdout strtod strtof strtol system tan tanh tempnam tgamma tmpfile tmpnam trunc uint16_t uint32_t "
      "uint64_t uint8_t uintmax_t uintptr_t ungetc unix va_list vprintf y0 y1 yn");
  return names;
}

std::string one_line(std::string_view s) {
  std::string out;
  for (const char c : s) out += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
  return out;
}

std::string identifier_of(std::string_view wanted) {
  std::string name;
  for (char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "value" + name;
  while (name.ends_with('_')) name.pop_back();
  const bool small = std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c); });
  if (small || name.find('_') == name.npos) return name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

bool is_identifier(std::string_view s) {
  if (s.empty() || s[0] == '_' || std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  return std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace kiln::aot
