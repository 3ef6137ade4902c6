// What the ledger's parts use to stop the process. Private to admission/.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace roost::admission {

// A ledger that lends memory twice ends in the node being killed under other people's statements; better to stop here.
inline void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "admission ledger: %s\n", what);
    std::abort();
}

}  // namespace roost::admission
