// The connection string of a Postgres catalog. Stateless, thread-safe. Called by whoever connects to the catalog, and
// by app/ for the ports and files that a connection needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace roost {

// The same connection as keywords and values, with roost's bounds where `dsn` (keywords, or a postgresql:// URL) says
// nothing of them: a connection is given up after 5 s; a peer that vanished is noticed within 20 s; the server ends a
// statement after `statement_ms` and a wait for a lock after 10 s. Errors: invalid_argument (the text is not repeated).
Result<std::string> complete_dsn(const std::string &dsn, int64_t statement_ms = 120'000);

struct DsnPlaces {
    std::vector<uint16_t> ports;       // TCP ports of its hosts
    std::vector<std::string> paths;    // folders of sockets, and files that it names
    std::vector<std::string> secrets;  // passwords
};
// What a connection opens and dials. Errors: as complete_dsn.
Result<DsnPlaces> places_of(const std::string &dsn);

}  // namespace roost
