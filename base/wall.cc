#include "base/wall.h"

namespace roost {

// Alone in its file: a binary that brings a definition of its own never takes this one from the library.
bool stands(Wall) { return true; }

}  // namespace roost
