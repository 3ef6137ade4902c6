// The pool's HTTP interface as the command line uses it: statements, nodes, routes, imports. Blocking; every call has a
// deadline. Errors carry what the server said (its code as name, hint, position). Not thread-safe, except stop().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/http_client.h"
#include "app/import_files.h"
#include "app/pool_address.h"
#include "app/result_writer.h"
#include "base/ids.h"
#include "base/status.h"

namespace roost::app {

// A page of rows: `rows` is the raw JSON array.
struct RowsPage {
    std::vector<ResultColumn> columns;
    std::string rows;
    std::string cursor;  // empty: the last page
};

struct StatementState {
    std::string id, status, kind;
    std::string error;      // the engine's own text, when it failed
    uint32_t position = 0;  // 1-based character in the statement, 0: unknown
    std::string wait;       // "waiting for memory, 3rd in line"
    double progress = -1;   // 0..100, negative: unknown
    bool has_result = false;
    std::optional<uint64_t> row_count;
    std::optional<RowsPage> first_page;

    bool is_over() const { return status != "queued" && status != "running"; }
};

struct SubmitOptions {
    std::string workspace = "main", catalog;
    double timeout_s = 600;
    int64_t wait_ms = 0;
};

struct ImportTarget {
    std::string workspace = "main", id;
    TableName table;
    std::string catalog;  // empty: the workspace's default
};

class PoolClient {
public:
    static Result<std::unique_ptr<PoolClient>> connect(const PoolAddress &address);

    Result<StatementState> submit(const std::string &sql, const SubmitOptions &options);
    Result<StatementState> status(const std::string &id, int64_t wait_ms);
    Result<RowsPage> rows(const std::string &id, const std::string &cursor);
    Status cancel(const std::string &id);

    Result<nlohmann::json> nodes();
    // `action`: "drain", "resume".
    Result<nlohmann::json> set_profile(const std::string &node, const std::string &profile);
    Result<nlohmann::json> node_action(const std::string &node, const std::string &action);
    // `table` empty: all.
    Result<nlohmann::json> placement(const std::string &workspace, const std::string &table);
    Result<nlohmann::json> cache_work(const std::string &workspace, const std::string &action, const std::string &table,
                                      const std::string &node);
    Result<nlohmann::json> explain_route(const std::string &workspace, const std::string &sql);

    // Checks the token and the workspace, so that nothing is uploaded in vain.
    Status check_workspace(const std::string &workspace);
    Status upload(const ImportTarget &target, const ImportFile &file, const std::function<bool(uint64_t)> &sent);
    Result<StatementState> run_import(const ImportTarget &target, const std::vector<ImportFile> &files,
                                      int64_t wait_ms);
    // Files of the pool's own machines or store, which its nodes read.
    Result<StatementState> run_import_of(const ImportTarget &target, const std::vector<std::string> &sources,
                                         int64_t wait_ms);
    // The same, and they stay where they are.
    Result<StatementState> run_in_place(const ImportTarget &target, const RegisterFiles &files, int64_t wait_ms);
    Status drop_import(const ImportTarget &target);

    void stop() { http_->stop(); }
    const std::string &url() const { return http_->url(); }

private:
    explicit PoolClient(std::unique_ptr<HttpClient> http) : http_(std::move(http)) {}
    Result<StatementState> post_import(const ImportTarget &target, nlohmann::json body, int64_t wait_ms);

    std::unique_ptr<HttpClient> http_;
};

// Parsers of answers, for tests.
Result<StatementState> statement_from_json(std::string_view body);
Result<RowsPage> rows_page_from_json(std::string_view body);
Status error_from_response(const HttpResponse &response);

}  // namespace roost::app
