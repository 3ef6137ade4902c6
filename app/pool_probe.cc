#include "app/pool_probe.h"

#include <nlohmann/json.hpp>

namespace roost::app {
namespace {

constexpr int kOk = 200, kAccepted = 202;

// A member of that type, or nothing: the answer may come from anything that listens there.
std::string text_of(const nlohmann::json &object, const char *name) {
    if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return {};
    return object[name].get<std::string>();
}

int64_t integer_of(const nlohmann::json &object, const char *name) {
    if (!object.is_object() || !object.contains(name) || !object[name].is_number_integer()) return 0;
    return object[name].get<int64_t>();
}

Status unexpected(const HttpResponse &response) {
    return Status(Code::unavailable,
                  "the gateway answered " + std::to_string(response.status) + ": " + response.body.substr(0, 500));
}

}  // namespace

PoolProbe::PoolProbe(const std::string &url, const std::string &token) {
    auto client = HttpClient::make(url, token);
    if (client.ok()) client_ = std::move(client).value();
}

Result<std::vector<PoolProbe::LinkedNode>> PoolProbe::linked_nodes() {
    if (!client_) return Status(Code::internal, "no address of the gateway");
    ROOST_ASSIGN_OR_RETURN(const HttpResponse response, client_->get("/api/nodes", kStep_ms));
    if (response.status != kOk) return unexpected(response);
    const nlohmann::json parsed = nlohmann::json::parse(response.body, nullptr, false);
    if (!parsed.is_array()) return unexpected(response);
    std::vector<LinkedNode> out;
    for (const nlohmann::json &node : parsed) {
        if (text_of(node, "status") != "offline") out.push_back({text_of(node, "id"), integer_of(node, "pid")});
    }
    return out;
}

Result<bool> PoolProbe::answers_a_query() {
    if (!client_) return Status(Code::internal, "no address of the gateway");
    if (statement_.empty()) {
        ROOST_ASSIGN_OR_RETURN(const HttpResponse ready, client_->get("/readyz", kStep_ms));
        if (ready.status != kOk) return false;
        const std::string body = R"({"sql":"SELECT 1","wait_timeout_s":0.3})";
        ROOST_ASSIGN_OR_RETURN(const HttpResponse response,
                               client_->post("/api/workspaces/main/queries", body, kStep_ms));
        return judge(response);
    }
    ROOST_ASSIGN_OR_RETURN(const HttpResponse response,
                           client_->get("/api/queries/" + statement_ + "?wait_timeout_s=0.3", kStep_ms));
    return judge(response);
}

Result<bool> PoolProbe::judge(const HttpResponse &response) {
    statement_.clear();
    if (response.status != kOk && response.status != kAccepted) return unexpected(response);
    const nlohmann::json parsed = nlohmann::json::parse(response.body, nullptr, false);
    if (!parsed.is_object()) return unexpected(response);
    const std::string status = text_of(parsed, "status");
    if (status == "done") return true;
    if (status == "queued" || status == "running") {
        statement_ = text_of(parsed, "id");
        return false;
    }
    return unexpected(response);
}

}  // namespace roost::app
