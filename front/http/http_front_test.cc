#include "front/http/http_front.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "front/http/fake_service.h"
#include "net/http_test_client.h"

namespace roost::http {
namespace {

using Json = nlohmann::json;
using Client = net::HttpTestClient;
using net::find_header;

class HttpFrontTest : public ::testing::Test {
protected:
    void SetUp() override {
        staging_ = std::filesystem::temp_directory_path() / ("roost_http_test_" + random_hex(8));
        std::filesystem::create_directories(staging_);
        service_.staging = staging_;
        service_.stream_plan.pulled = &pulled_;
        service_.stream_plan.cancelled = &cancelled_;
        service_.stream_plan.dropped = &dropped_;
        ApiOptions options;
        options.version = "9.9.9";
        options.all_bodies_max_bytes = 40 << 20;
        front_.emplace(loop_, service_, clock_, *log_, options);
        ASSERT_TRUE(front_->listen("127.0.0.1:0").ok());
        thread_ = std::thread([this] { loop_.run(); });
    }
    void TearDown() override {
        net::asio::co_spawn(loop_, front_->stop(0), net::asio::use_future).get();
        loop_.stop();
        thread_.join();
        front_.reset();
        std::filesystem::remove_all(staging_);
    }

    struct Answer {
        int status = 0;
        net::HttpHeaders headers;
        std::string text;
        Json json;
    };
    static std::string format(std::string_view method, std::string_view target, std::string_view body = {},
                              std::string_view token = kToken) {
        std::string text = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n";
        if (!token.empty()) text += "Authorization: Bearer " + std::string(token) + "\r\n";
        if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
        return text + "\r\n" + std::string(body);
    }
    // Orders what the test and the loop do to the fake service.
    void sync() { net::asio::post(loop_, net::asio::use_future).get(); }
    Answer raw(std::string_view bytes, bool head_only = false) {
        sync();
        Client client(front_->endpoint());
        client.send(bytes);
        auto response = client.read(head_only);
        sync();
        if (!response) return {};
        EXPECT_TRUE(response->whole);
        return {response->status, response->headers, response->body, Json::parse(response->body, nullptr, false)};
    }
    Answer call(std::string_view method, std::string_view target, std::string_view body = {},
                std::string_view token = kToken) {
        return raw(format(method, target, body, token));
    }
    Answer submit(std::string_view sql, Json more = Json::object()) {
        more["sql"] = sql;
        return call("POST", "/api/workspaces/main/queries", more.dump());
    }
    // An error answer has the envelope and nothing that clients take for another one.
    static void expect_error(const Answer &answer, int status, std::string_view code) {
        EXPECT_EQ(answer.status, status) << answer.text;
        ASSERT_TRUE(answer.json.is_object()) << answer.text;
        EXPECT_EQ(answer.json.value("error", ""), code) << answer.text;
        EXPECT_FALSE(answer.json.value("message", "").empty());
        EXPECT_TRUE(answer.json.contains("details"));
        EXPECT_FALSE(answer.json.contains("detail"));
        EXPECT_EQ(*find_header(answer.headers, "Content-Type"), "application/json");
    }
    template <class Condition>
    static bool eventually(Condition condition) {
        for (int i = 0; i < 5000; ++i) {
            if (condition()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }

    net::asio::io_context loop_;
    net::asio::executor_work_guard<net::asio::io_context::executor_type> work_{loop_.get_executor()};
    SystemClock clock_;
    std::unique_ptr<obs::Log> log_ = obs::make_null_log();
    FakeService service_{loop_.get_executor()};
    std::atomic<size_t> pulled_ = 0;
    std::atomic<bool> cancelled_ = false, dropped_ = false;
    std::filesystem::path staging_;
    std::optional<HttpFront> front_;
    std::thread thread_;
};

// --- who may ask

TEST_F(HttpFrontTest, PublicRoutesNeedNoToken) {
    for (const std::string_view path : {"/healthz", "/api/healthz", "/readyz", "/api/readyz"}) {
        const Answer answer = call("GET", path, {}, {});
        EXPECT_EQ(answer.status, 200) << path;
        EXPECT_EQ(answer.json["status"], "ok");
    }
    const Answer version = call("GET", "/api/version", {}, {});
    EXPECT_EQ(version.json, (Json{{"version", "9.9.9"}, {"api_version", 2}}));
}

TEST_F(HttpFrontTest, EverythingElseNeedsOne) {
    const std::string id = Uuid::make().to_string();
    const std::pair<std::string, std::string> routes[] = {
        {"GET", "/metrics"},
        {"GET", "/api/me"},
        {"GET", "/api/nodes"},
        {"GET", "/api/agents"},
        {"GET", "/api/workspaces"},
        {"GET", "/api/workspaces/main"},
        {"GET", "/api/workspaces/main/catalogs"},
        {"GET", "/api/workspaces/main/catalogs/lake/schemas"},
        {"GET", "/api/workspaces/main/catalogs/lake/schemas/main/tables"},
        {"POST", "/api/workspaces/main/queries"},
        {"GET", "/api/workspaces/main/queries"},
        {"GET", "/api/queries/" + id},
        {"GET", "/api/queries/" + id + "/rows"},
        {"GET", "/api/queries/" + id + "/result?format=arrow"},
        {"DELETE", "/api/queries/" + id},
        {"PUT", "/api/workspaces/main/imports/" + id + "/files/a"},
        {"POST", "/api/sql/sessions/" + id + "/statements"},
        {"DELETE", "/api/sql/sessions/" + id},
        {"PATCH", "/api/me"},
        {"GET", "/no/such/route"},
        {"GET", "/"},
    };
    for (const auto &[method, path] : routes) {
        for (const std::string_view token : {"", "wrong"}) {
            const Answer answer = call(method, path, method == "POST" ? R"({"sql":"x"})" : "", token);
            expect_error(answer, 401, "unauthorized");
            EXPECT_EQ(*find_header(answer.headers, "WWW-Authenticate"), "Bearer realm=\"roost\"");
        }
    }
    EXPECT_EQ(service_.auth_failures, std::ssize(routes));
}

TEST_F(HttpFrontTest, CatalogsCanBeBrowsed) {
    const std::string id = service_.workspace.id.to_string();
    const Answer schemas = call("GET", "/api/workspaces/main/catalogs/lake/schemas");
    EXPECT_EQ(schemas.json[0], (Json{{"name", "main"},
                                     {"catalog", "lake"},
                                     {"catalog_name", "lake"},
                                     {"workspace_id", id},
                                     {"table_count", 2},
                                     {"view_count", 1}}));
    EXPECT_EQ(schemas.json.size(), 2u);
    const Answer tables = call("GET", "/api/workspaces/" + id + "/catalogs/lake/schemas/main/tables");
    ASSERT_EQ(tables.json.size(), 2u);
    EXPECT_EQ(tables.json[0]["table_type"], "BASE TABLE");
    EXPECT_EQ(tables.json[0]["row_count"], 15);
    EXPECT_EQ(tables.json[1]["name"], "v \"q\"");
    EXPECT_EQ(tables.json[1]["table_type"], "VIEW");
    EXPECT_EQ(call("GET", "/api/workspaces/main/catalogs/lake/schemas/gone/tables").json, Json::array());
    expect_error(call("GET", "/api/workspaces/main/catalogs/other/schemas"), 404, "catalog_not_found");
    expect_error(call("GET", "/api/workspaces/nope/catalogs/lake/schemas"), 404, "workspace_not_found");
}

TEST_F(HttpFrontTest, BasicIsNoWayIn) {
    expect_error(raw("GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YW5uOnB3\r\n\r\n"), 401, "unauthorized");
    EXPECT_EQ(service_.auth_failures, 1);
}

TEST_F(HttpFrontTest, BodyOfAStrangerIsNotRead) {
    Client client(front_->endpoint());
    client.send(
        "POST /api/workspaces/main/queries HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
        "1000000\r\n\r\n");
    EXPECT_EQ(client.read()->status, 401);
}

// --- errors in the envelope

TEST_F(HttpFrontTest, ErrorsHaveTheEnvelope) {
    expect_error(call("GET", "/no/such/route"), 404, "not_found");
    expect_error(call("GET", "/api/queries/" + Uuid::make().to_string()), 404, "not_found");
    expect_error(call("GET", "/api/queries/not-a-uuid"), 404, "not_found");
    expect_error(call("GET", "/api/workspaces/nope"), 404, "workspace_not_found");
    expect_error(call("GET", "/api/%zz"), 400, "bad_request");
    expect_error(call("POST", "/api/workspaces/main/queries", "{not json"), 400, "bad_request");
    expect_error(call("POST", "/api/workspaces/main/queries", "{}"), 422, "unprocessable_content");
    expect_error(submit("THROW"), 500, "internal_error");
    expect_error(submit("NO NODE"), 503, "unavailable");
    expect_error(submit("x", {{"agent_id", Uuid::make().to_string()}}), 404, "agent_not_found");
    expect_error(raw("GET /api/version HTTP/1.1\r\n\r\n"), 400, "bad_request");
    expect_error(raw("nonsense\r\n\r\n"), 400, "bad_request");
    expect_error(raw("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n"), 414, "target_too_long");
    expect_error(raw("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"), 431, "header_too_large");
}

TEST_F(HttpFrontTest, WrongMethod) {
    const Answer answer = call("PUT", "/api/workspaces/main/queries");
    expect_error(answer, 405, "method_not_allowed");
    EXPECT_EQ(*find_header(answer.headers, "Allow"), "POST, GET, HEAD");
}

TEST_F(HttpFrontTest, SessionsAreTheServicesToHave) {
    expect_error(call("POST", "/api/workspaces/main/sql/sessions", "{}"), 501, "not_implemented");
    expect_error(call("DELETE", "/api/sql/sessions/" + Uuid::make().to_string()), 501, "not_implemented");
}

TEST_F(HttpFrontTest, GuardRefusalSaysTheRule) {
    const Answer answer = submit("FORBIDDEN");
    expect_error(answer, 422, "sql_not_allowed");
    EXPECT_EQ(answer.json["details"],
              (Json{{"rule", "kind_attach"}, {"position", 3}, {"hint", "Don't."}, {"sqlstate", "42501"}}));
}

TEST_F(HttpFrontTest, SyntaxErrorSaysThePlace) {
    const Answer answer = submit("SELEC");
    expect_error(answer, 422, "syntax_error");
    EXPECT_EQ(answer.json["details"]["position"], 1);
}

TEST_F(HttpFrontTest, WrongFieldIsNamed) {
    const Answer answer = submit("x", {{"wait_timeout_s", 31}});
    expect_error(answer, 422, "unprocessable_content");
    EXPECT_EQ(answer.json["details"]["field"], "wait_timeout_s");
}

TEST_F(HttpFrontTest, SqlOf17MiBIsRefusedByTheServiceNotTheConnection) {
    expect_error(submit(std::string(17 << 20, 'x')), 422, "program_limit_exceeded");
}

TEST_F(HttpFrontTest, BodyOver32MiBIsTooLarge) {
    expect_error(submit(std::string(33 << 20, 'x')), 413, "body_too_large");
    EXPECT_EQ(submit("SELECT 1").status, 200);
}

TEST_F(HttpFrontTest, BodiesTogetherAreBounded) {
    Client half(front_->endpoint());
    half.send(
        "POST /api/workspaces/main/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret-token\r\n"
        "Expect: 100-continue\r\nContent-Length: 30000000\r\n\r\n");
    EXPECT_EQ(half.read()->status, 100);
    const std::string large(20'000'000, 'x');
    expect_error(submit(large), 503, "too_busy");
    EXPECT_EQ(submit("SELECT 1").status, 200);
    half.leave();
    EXPECT_TRUE(eventually([&] { return service_.connections == 0; }));
    expect_error(submit(large), 422, "program_limit_exceeded");
}

// --- submit, follow, cancel

TEST_F(HttpFrontTest, SubmitAnswersWithTheQueryObject) {
    const Answer answer = submit("SELECT 1", {{"catalog", "lake"}, {"parameters", {1}}, {"unknown", 1}});
    EXPECT_EQ(answer.status, 200);
    const Json &query = answer.json;
    EXPECT_EQ(query["status"], "done");
    EXPECT_EQ(query["row_count"], 1);
    EXPECT_EQ(query["has_result"], true);
    EXPECT_EQ(query["error"], nullptr);
    EXPECT_EQ(query["duration_ms"], 1500);
    EXPECT_EQ(query["started_at"], "2023-11-14T22:13:20.123456+00:00");
    EXPECT_EQ(query["finished_at"], "2023-11-14T22:13:21.623456+00:00");
    EXPECT_EQ(query["column_schema"], Json::parse(R"([{"name":"n","type":"INTEGER"}])"));
    EXPECT_EQ(query["first_page"],
              Json::parse(R"({"columns":["n"],"rows":[{"n":0}],"column_schema":[{"name":"n","type":"INTEGER"}],
        "total":1,"cursor":null})"));
    for (const char *key :
         {"id", "workspace_id", "agent_id", "sql", "session_id", "origin", "statement_type", "user_id", "user_name",
          "result_bytes", "progress", "schedule_id", "cache_status", "running_at", "inline_arrow", "wait"}) {
        EXPECT_TRUE(query.contains(key)) << key;
    }
    EXPECT_EQ(query["agent_id"], service_.node.id.to_string());
    EXPECT_EQ(service_.submitted.catalog, "lake");
    EXPECT_EQ(service_.submitted.params.size(), 1u);
}

TEST_F(HttpFrontTest, WorkspaceBySlugOrId) {
    const std::string body = R"({"sql":"SELECT 1"})";
    EXPECT_EQ(call("POST", "/api/workspaces/" + service_.workspace.id.to_string() + "/queries", body).status, 200);
    expect_error(call("POST", "/api/workspaces/other/queries", body), 404, "workspace_not_found");
    EXPECT_EQ(call("GET", "/api/workspaces/" + service_.workspace.id.to_string()).json["slug"], "main");
    EXPECT_EQ(call("GET", "/api/workspaces/m%61in").json["slug"], "main");
}

TEST_F(HttpFrontTest, UserAgentIsPassedOn) {
    raw("POST /api/workspaces/main/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret-token\r\n"
        "User-Agent: duckhaven-cli/0.4.0 httpx/1\r\nContent-Length: 11\r\n\r\n{\"sql\":\"x\"}");
    EXPECT_EQ(service_.submitted.client_name, "duckhaven-cli/0.4.0");
}

TEST_F(HttpFrontTest, FailedStatementIsASuccessfulExchange) {
    const Answer answer = submit("FAIL");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.json["status"], "failed");
    EXPECT_EQ(answer.json["error"], "Catalog Error: Table with name \"t\" does not exist!");
    EXPECT_EQ(answer.json["sqlstate"], "42P01");
    EXPECT_EQ(answer.json["has_result"], false);
    EXPECT_EQ(answer.json["first_page"], nullptr);
}

TEST_F(HttpFrontTest, RunningStatementIs202ThenFollowedAndCancelled) {
    const Answer submitted = submit("SLOW", {{"wait_timeout_s", 0.01}});
    EXPECT_EQ(submitted.status, 202);
    EXPECT_EQ(submitted.json["status"], "running");
    EXPECT_EQ(submitted.json["progress"], 0.25);
    EXPECT_EQ(submitted.json["wait"], "waiting for memory, 3rd in line");
    EXPECT_EQ(submitted.json["finished_at"], nullptr);
    EXPECT_EQ(submitted.json["duration_ms"], nullptr);
    const std::string path = "/api/queries/" + submitted.json["id"].get<std::string>();
    EXPECT_EQ(call("GET", path).json["status"], "running");
    expect_error(call("GET", path + "/rows"), 409, "failed_precondition");
    // A poll that waits is answered when the statement ends.
    Client polling(front_->endpoint());
    polling.send(format("GET", path + "?wait_timeout_s=30"));
    const Answer cancelled = call("DELETE", path);
    EXPECT_EQ(cancelled.status, 204);
    EXPECT_EQ(cancelled.text, "");
    EXPECT_EQ(Json::parse(polling.read()->body)["status"], "cancelled");
    EXPECT_EQ(call("DELETE", path).status, 204);
    expect_error(call("DELETE", "/api/queries/" + Uuid::make().to_string()), 404, "not_found");
    expect_error(call("GET", path + "?wait_timeout_s=31"), 422, "unprocessable_content");
}

TEST_F(HttpFrontTest, ClientThatLeavesDuringAHoldCancelsNothing) {
    Client client(front_->endpoint());
    client.send(format("POST", "/api/workspaces/main/queries", R"({"sql":"SLOW","wait_timeout_s":0.2})"));
    ASSERT_TRUE(eventually([&] { return call("GET", "/api/workspaces/main/queries").json["items"].size() == 1; }));
    client.leave();
    ASSERT_TRUE(eventually([&] { return service_.connections == 0; }));
    EXPECT_EQ(call("GET", "/api/workspaces/main/queries").json["items"][0]["status"], "running");
}

TEST_F(HttpFrontTest, Profile) {
    const std::string id = submit("SELECT 1").json["id"];
    EXPECT_EQ(call("GET", "/api/queries/" + id + "/profile").json, Json::parse(R"({"stages":[]})"));
}

// --- rows

TEST_F(HttpFrontTest, FirstPageLeadsOnToTheRest) {
    const Answer answer = submit("ROWS 250");
    EXPECT_EQ(answer.json["first_page"]["rows"].size(), 200u);
    const std::string path = "/api/queries/" + answer.json["id"].get<std::string>() + "/rows?limit=1000&cursor=";
    const Answer rest = call("GET", path + answer.json["first_page"]["cursor"].get<std::string>());
    EXPECT_EQ(rest.json["rows"].size(), 50u);
    EXPECT_EQ(rest.json["rows"][0]["n"], 200);
    EXPECT_EQ(rest.json["cursor"], nullptr);
    EXPECT_EQ(submit("ROWS 250", {{"first_page_limit", 0}}).json["first_page"], nullptr);
}

TEST_F(HttpFrontTest, PagesAddUpForEveryCountAndLimit) {
    for (const int count : {0, 1, 59, 60, 61, 100, 101, 999, 1000, 1001, 2049}) {
        const std::string path =
            "/api/queries/" + submit("ROWS " + std::to_string(count)).json["id"].get<std::string>() + "/rows";
        for (const int limit : {60, 1000}) {
            std::vector<int> seen;
            std::string cursor;
            int pages = 0;
            do {
                const Answer page =
                    call("GET", path + "?limit=" + std::to_string(limit) + (cursor.empty() ? "" : "&cursor=" + cursor));
                ASSERT_EQ(page.status, 200) << page.text;
                EXPECT_EQ(page.json["total"], count);
                for (const Json &row : page.json["rows"]) seen.push_back(row["n"]);
                cursor = page.json["cursor"].is_null() ? "" : page.json["cursor"].get<std::string>();
                ASSERT_LE(++pages, count / limit + 1);
            } while (!cursor.empty());
            ASSERT_EQ(static_cast<int>(seen.size()), count);
            for (int row = 0; row < count; ++row) ASSERT_EQ(seen[row], row);
        }
    }
}

TEST_F(HttpFrontTest, RowsDefaultTo100AndRefuseNonsense) {
    const std::string path = "/api/queries/" + submit("ROWS 250").json["id"].get<std::string>() + "/rows";
    EXPECT_EQ(call("GET", path).json["rows"].size(), 100u);
    for (const std::string_view limit : {"0", "1001", "x", ""}) {
        expect_error(call("GET", path + "?limit=" + std::string(limit)), 422, "unprocessable_content");
    }
    expect_error(call("GET", path + "?cursor=!!nonsense"), 422, "invalid_cursor");
    expect_error(call("GET", path + "?cursor="), 422, "invalid_cursor");
    expect_error(call("GET", path + "?cursor=" + encode_cursor(Uuid::make(), 100)), 422, "invalid_cursor");
}

TEST_F(HttpFrontTest, RowsOfAStatementWithoutAGrid) {
    const Answer answer = submit("DDL");
    EXPECT_EQ(answer.json["has_result"], false);
    EXPECT_EQ(answer.json["column_schema"], nullptr);
    EXPECT_EQ(answer.json["statement_type"], "create");
    const Answer rows = call("GET", "/api/queries/" + answer.json["id"].get<std::string>() + "/rows");
    EXPECT_EQ(rows.status, 200);
    EXPECT_EQ(rows.json, Json::parse(R"({"columns":[],"rows":[],"column_schema":[],"total":0,"cursor":null})"));
}

TEST_F(HttpFrontTest, EmptyPageBeforeTheEndIsAnErrorNotTheEnd) {
    const std::string path = "/api/queries/" + submit("ROWS 250").json["id"].get<std::string>() + "/rows";
    service_.empty_pages = true;
    expect_error(call("GET", path), 500, "internal_error");
}

// --- Arrow

TEST_F(HttpFrontTest, ArrowIsStreamed) {
    const std::string path = "/api/queries/" + submit("SELECT 1").json["id"].get<std::string>() + "/result";
    service_.stream_plan.frames = 3;
    const Answer answer = call("GET", path + "?format=arrow");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(*find_header(answer.headers, "Content-Type"), "application/vnd.apache.arrow.stream");
    EXPECT_EQ(answer.text.size(), 300u);
    expect_error(call("GET", path), 422, "unprocessable_content");
    expect_error(call("GET", path + "?format=csv"), 422, "unprocessable_content");
}

TEST_F(HttpFrontTest, ArrowWithoutAGridOrRows) {
    const std::string path = "/api/queries/" + submit("DDL").json["id"].get<std::string>() + "/result?format=arrow";
    service_.stream_plan.has_grid = false;
    EXPECT_EQ(call("GET", path).status, 204);
    service_.stream_plan.has_grid = true;
    service_.stream_plan.frames = 0;
    const Answer empty = call("GET", path);
    EXPECT_EQ(empty.status, 200);
    EXPECT_EQ(empty.text, "");
}

TEST_F(HttpFrontTest, ArrowErrorBeforeTheFirstFrameHasAStatus) {
    const std::string path =
        "/api/queries/" + submit("SELECT 1").json["id"].get<std::string>() + "/result?format=arrow";
    service_.stream_plan.frames = 0;
    service_.stream_plan.end = Status(Code::unavailable, "The node is away.");
    const Answer answer = call("GET", path);
    expect_error(answer, 503, "unavailable");
    EXPECT_EQ(*find_header(answer.headers, "Retry-After"), "1");
}

TEST_F(HttpFrontTest, ArrowErrorMidwayCutsTheResponse) {
    const std::string path =
        "/api/queries/" + submit("SELECT 1").json["id"].get<std::string>() + "/result?format=arrow";
    service_.stream_plan.frames = 2;
    service_.stream_plan.end = Status(Code::unavailable, "The node is away.");
    sync();
    Client client(front_->endpoint());
    client.send(format("GET", path));
    const auto response = client.read();
    EXPECT_EQ(response->status, 200);
    EXPECT_FALSE(response->whole);
}

TEST_F(HttpFrontTest, ArrowReaderThatLeavesStopsTheStream) {
    const std::string path =
        "/api/queries/" + submit("SELECT 1").json["id"].get<std::string>() + "/result?format=arrow";
    service_.stream_plan.hang = true;
    sync();
    Client client(front_->endpoint());
    client.send(format("GET", path));
    ASSERT_TRUE(client.readable(5000));
    EXPECT_FALSE(dropped_);
    client.leave();
    EXPECT_TRUE(eventually([&] { return cancelled_.load() && dropped_.load(); }));
}

TEST_F(HttpFrontTest, SlowArrowReaderHoldsTheNodeBack) {
    const std::string path =
        "/api/queries/" + submit("SELECT 1").json["id"].get<std::string>() + "/result?format=arrow";
    service_.stream_plan.frames = 100;
    service_.stream_plan.frame_bytes = 1 << 20;
    sync();
    Client client(front_->endpoint());
    client.send(format("GET", path));
    ASSERT_TRUE(client.readable(5000));
    size_t before = 0;
    ASSERT_TRUE(eventually([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return std::exchange(before, pulled_.load()) == pulled_.load();
    }));
    EXPECT_LT(pulled_, 50u);
    const auto response = client.read();
    EXPECT_TRUE(response->whole);
    EXPECT_EQ(response->body.size(), size_t{100} << 20);
}

// --- history, browsing

TEST_F(HttpFrontTest, HistoryPage) {
    submit("SELECT 1");
    const Answer first = call("GET", "/api/workspaces/main/queries?limit=5&q=a%25b&status=done&status=failed");
    EXPECT_EQ(first.status, 200) << first.text;
    EXPECT_EQ(first.json["items"].size(), 1u);
    EXPECT_EQ(first.json["items"][0]["sql"], "SELECT 1");
    EXPECT_EQ(first.json["cursor"], "next");
    EXPECT_EQ(first.json["has_more"], true);
    EXPECT_EQ(service_.listed.limit, 5u);
    EXPECT_EQ(service_.listed.text, "a%b");
    EXPECT_EQ(service_.listed.statuses.size(), 2u);
    EXPECT_EQ(service_.listed.workspace, service_.workspace.id);
    const Answer last = call("GET", "/api/workspaces/main/queries?cursor=next&all_workspaces=true");
    EXPECT_EQ(last.json["cursor"], nullptr);
    EXPECT_EQ(last.json["has_more"], false);
    EXPECT_FALSE(service_.listed.workspace);
    expect_error(call("GET", "/api/workspaces/main/queries?cursor=bad"), 422, "invalid_cursor");
    expect_error(call("GET", "/api/workspaces/main/queries?limit=0"), 422, "unprocessable_content");
    expect_error(call("GET", "/api/workspaces/nope/queries"), 404, "workspace_not_found");
}

TEST_F(HttpFrontTest, LongStatementsAreCutInListsAlone) {
    const std::string sql = "SELECT '" + std::string(20'000, 'x') + "'";
    const std::string id = submit(sql).json["id"];
    EXPECT_EQ(call("GET", "/api/queries/" + id).json["sql"], sql);
    const Json item = call("GET", "/api/workspaces/main/queries").json["items"][0];
    EXPECT_EQ(item["sql"].get<std::string>().size(), 16u * 1024);
    EXPECT_EQ(item["sql_truncated"], true);
}

TEST_F(HttpFrontTest, Browsing) {
    EXPECT_EQ(call("GET", "/api/workspaces").json[0]["slug"], "main");
    const Json workspace = call("GET", "/api/workspaces/main").json;
    EXPECT_EQ(workspace["default_catalog"], "lake");
    EXPECT_EQ(workspace["created_at"], "2023-11-14T22:13:20.000000+00:00");
    const Json catalogs = call("GET", "/api/workspaces/main/catalogs").json;
    EXPECT_EQ(catalogs[0]["slug"], "lake");
    EXPECT_EQ(catalogs[0]["is_default"], true);
    EXPECT_EQ(call("GET", "/api/catalogs").json, catalogs);
    const Json me = call("GET", "/api/me").json;
    EXPECT_EQ(me["name"], "ann");
    EXPECT_EQ(me["role"], "admin");
    const Json agents = call("GET", "/api/agents").json;
    EXPECT_EQ(agents[0]["id"], service_.node.id.to_string());
    EXPECT_EQ(agents[0]["status"], "online");
    EXPECT_EQ(call("GET", "/api/nodes").json[0]["pool"], "default");
    EXPECT_EQ(call("GET", "/metrics").text, "roost_up 1\n");
}

TEST_F(HttpFrontTest, ExplainRoute) {
    const Json route = call("POST", "/api/workspaces/main/explain-route", R"({"sql":"SELECT 1"})").json;
    EXPECT_EQ(route["node"], "node-1");
    EXPECT_EQ(route["policy"], "least_loaded");
    EXPECT_EQ(route["candidates"][0]["load"], 0.5);
    expect_error(call("POST", "/api/workspaces/main/explain-route", R"({"sql":"FORBIDDEN"})"), 422, "sql_not_allowed");
}

TEST_F(HttpFrontTest, NotReadyAndDraining) {
    service_.is_ready = false;
    const Answer answer = call("GET", "/readyz", {}, {});
    expect_error(answer, 503, "unavailable");
    EXPECT_EQ(answer.json["status"], "unavailable");
    EXPECT_EQ(call("GET", "/healthz", {}, {}).status, 200);
    const Answer pool = call("GET", "/api/maintenance/health");
    expect_error(pool, 503, "unavailable");
    EXPECT_EQ(pool.json["nodes_online"], 1);
    service_.is_ready = true;
    EXPECT_EQ(call("GET", "/api/maintenance/health").json, (Json{{"status", "ok"}, {"nodes", 1}, {"nodes_online", 1}}));
    EXPECT_EQ(call("GET", "/api/workspaces/main/health").json["status"], "ok");
    service_.is_draining = true;
    EXPECT_EQ(call("GET", "/readyz", {}, {}).status, 503);
}

TEST_F(HttpFrontTest, HeadOfARoute) {
    const Answer answer = raw(format("HEAD", "/api/version"), true);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(*find_header(answer.headers, "Content-Length"), std::to_string(call("GET", "/api/version").text.size()));
}

TEST_F(HttpFrontTest, ConnectionsAreCounted) {
    Client client(front_->endpoint());
    EXPECT_TRUE(eventually([&] { return service_.connections == 1; }));
    client.leave();
    EXPECT_TRUE(eventually([&] { return service_.connections == 0; }));
}

// --- imports

class HttpImportTest : public HttpFrontTest {
protected:
    const std::string import_path_ = "/api/workspaces/main/imports/" + Uuid::make().to_string();
    size_t staged_files() const {
        return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(staging_), {}));
    }
};

TEST_F(HttpImportTest, UploadRunDrop) {
    const Answer upload = call("PUT", import_path_ + "/files/a%20b.csv", "x,y\n1,2\n");
    EXPECT_EQ(upload.status, 201);
    EXPECT_EQ(upload.json, (Json{{"name", "a b.csv"}, {"size_bytes", 8}}));
    std::ifstream file(staging_ / "a b.csv");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "x,y\n1,2\n");
    const Answer run =
        call("POST", import_path_,
             R"({"schema":"main","table":"t","files":[{"name":"a b.csv","format":"csv"}],"wait_timeout_s":1})");
    EXPECT_EQ(run.status, 200);
    EXPECT_EQ(run.json["status"], "done");
    EXPECT_EQ(service_.imported.files[0].name, "a b.csv");
    EXPECT_EQ(call("DELETE", import_path_).status, 204);
    EXPECT_EQ(service_.dropped_staging, 1);
}

TEST_F(HttpImportTest, EmptyFile) {
    EXPECT_EQ(call("PUT", import_path_ + "/files/empty").json["size_bytes"], 0);
    EXPECT_TRUE(std::filesystem::exists(staging_ / "empty"));
}

TEST_F(HttpImportTest, LargeUploadGoesToDisk) {
    constexpr size_t kPiece = 1'000'000, kPieces = 50;
    Client client(front_->endpoint());
    client.send("PUT " + import_path_ +
                "/files/big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret-token\r\nContent-Length: " +
                std::to_string(kPiece * kPieces) + "\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(client.read()->status, 100);
    for (size_t i = 0; i < kPieces; ++i) ASSERT_TRUE(client.send(std::string(kPiece, static_cast<char>('a' + i % 26))));
    EXPECT_EQ(Json::parse(client.read()->body)["size_bytes"], kPiece * kPieces);
    EXPECT_EQ(std::filesystem::file_size(staging_ / "big"), kPiece * kPieces);
    EXPECT_EQ(staged_files(), 1u);
}

TEST_F(HttpImportTest, BrokenUploadLeavesNothing) {
    Client client(front_->endpoint());
    client.send(
        "PUT " + import_path_ +
        "/files/half HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret-token\r\nContent-Length: 9000000\r\n\r\n");
    client.send(std::string(5'000'000, 'x'));
    ASSERT_TRUE(eventually([&] { return staged_files() == 1; }));
    client.leave();
    EXPECT_TRUE(eventually([&] { return staged_files() == 0; }));
}

TEST_F(HttpImportTest, BadNamesAndPlaces) {
    expect_error(call("PUT", import_path_ + "/files/a%2Fb", "x"), 422, "unprocessable_content");
    expect_error(call("PUT", import_path_ + "/files/..", "x"), 422, "unprocessable_content");
    expect_error(call("PUT", "/api/workspaces/main/imports/7/files/a", "x"), 404, "not_found");
    expect_error(call("PUT", "/api/workspaces/nope/imports/" + Uuid::make().to_string() + "/files/a", "x"), 404,
                 "workspace_not_found");
    service_.staging = staging_ / "missing";
    expect_error(call("PUT", import_path_ + "/files/a", "x"), 500, "io_error");
    expect_error(call("POST", import_path_, "{}"), 422, "unprocessable_content");
}

}  // namespace
}  // namespace roost::http
