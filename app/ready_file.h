// What a running pool says of itself: the ready file, that scripts and the command line read, and the lines that `roost
// up` prints. Pure, but for write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/credentials.h"
#include "app/endpoints.h"
#include "base/status.h"

namespace roost::app {

struct ReadyNode {
    std::string id, dir;
    int64_t pid = 0;
};

struct ReadyInfo {
    std::string http, pg;  // "http://HOST:PORT", "HOST:PORT", as a client on this machine dials them
    Credentials credentials;
    std::string workspace = "main", catalog = "lake";
    std::vector<ReadyNode> nodes;
};

// {"http","pg","user","password","token","workspace","catalog","nodes":[{"id","pid","dir"}]}
std::string ready_to_json(const ReadyInfo &info);
Result<ReadyInfo> ready_from_json(const std::string &path, const std::string &text);

// "0.0.0.0:80" → "127.0.0.1:80": an address to listen at, as one to dial.
std::string dialable(const std::string &address);

// 'it''s' for a POSIX shell: the text itself when it needs no quotes.
std::string shell_quoted(const std::string &text);

// "PGPASSFILE=… psql -h … -p … -U … -d …": works as it stands, without the password in the shell's history.
std::string psql_line(const ReadyInfo &info, const std::string &passfile);

}  // namespace roost::app
