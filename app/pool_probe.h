// Asks a pool that is starting whether it answers: one short step at a time, so that the supervisor stays attentive in
// between. Blocking for at most kStep_ms. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/http_client.h"
#include "base/status.h"

namespace roost::app {

class PoolProbe {
public:
    static constexpr int64_t kStep_ms = 700;

    struct LinkedNode {
        std::string id;
        int64_t pid = 0;
    };

    PoolProbe(const std::string &url, const std::string &token);

    // The nodes that are linked to the gateway now; an error when it does not answer (yet).
    Result<std::vector<LinkedNode>> linked_nodes();
    // A whole statement, from parse to rows. False: not done yet, ask again. An error says what went wrong with it.
    Result<bool> answers_a_query();

private:
    Result<bool> judge(const HttpResponse &response);
    std::unique_ptr<HttpClient> client_;
    std::string statement_;  // id of the one that is under way
};

}  // namespace roost::app
