#include <cstdio>
#include <kiln/version.hpp>
#include <string_view>

static_assert(kiln::version == kiln::version_number{KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH});
static_assert(kiln::version_text == std::string_view(EXPECTED_VERSION));

int main() { std::printf("kiln %s\n", kiln::version_text); }
