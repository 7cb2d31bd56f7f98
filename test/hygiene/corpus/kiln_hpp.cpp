#include <kiln/kiln.hpp>
