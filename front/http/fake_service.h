// A Service for the tests of the HTTP front: it does what the SQL text says (see submit) and counts what it was asked.
// Loop thread only, except for the atomics.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>

#include "service/service.h"

namespace roost::http {

inline constexpr std::string_view kToken = "secret-token";

// Frames of `frame_bytes` each, `frames` of them; then the end, or an error.
class FakeStream final : public service::ResultStream {
public:
    struct Plan {
        bool has_grid = true;
        size_t frames = 1, frame_bytes = 100;
        Status end;         // how it ends
        bool hang = false;  // after the frames, wait until cancelled
        std::atomic<size_t> *pulled = nullptr;
        std::atomic<bool> *cancelled = nullptr, *dropped = nullptr;
    };
    FakeStream(net::asio::any_io_executor executor, Plan plan) : plan_(std::move(plan)), event_(std::move(executor)) {}
    ~FakeStream() override {
        if (plan_.dropped) *plan_.dropped = true;
    }
    const Uuid &id() const override { return id_; }
    net::Task<Result<ResultHeader>> header() override {
        ResultHeader header;
        header.has_grid = plan_.has_grid;
        co_return header;
    }
    net::Task<Result<std::optional<service::RowsFrame>>> next() override {
        if (sent_ < plan_.frames) {
            ++sent_;
            if (plan_.pulled) ++*plan_.pulled;
            service::RowsFrame frame;
            frame.bytes = std::string(plan_.frame_bytes, static_cast<char>('a' + sent_ % 26));
            co_return std::optional(std::move(frame));
        }
        while (plan_.hang && reason_.ok()) co_await event_.wait();
        if (!reason_.ok()) co_return reason_;
        if (!plan_.end.ok()) co_return plan_.end;
        co_return std::optional<service::RowsFrame>();
    }
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t) const override { return {}; }
    void cancel(Status reason) override {
        reason_ = std::move(reason);
        if (plan_.cancelled) *plan_.cancelled = true;
        event_.notify();
    }

private:
    Plan plan_;
    net::Event event_;
    Uuid id_;
    Status reason_;
    Completion completion_;
    size_t sent_ = 0;
};

class FakeService final : public service::Service {
public:
    explicit FakeService(net::asio::any_io_executor executor) : changed(std::move(executor)) {
        workspace.id = Uuid::from_name("main");
        workspace.slug = "main";
        workspace.name = "Main";
        workspace.default_catalog = "lake";
        workspace.created_us = 1'700'000'000'000'000;
        user.user_id = Uuid::from_name("ann");
        user.user_name = "ann";
        user.role = "admin";
        node.id = Uuid::from_name("node-1");
        node.name = "node-1";
        node.pool = "default";
        node.status = "online";
        node.last_seen_us = node.first_seen_us = 1'700'000'000'000'000;
    }

    Result<service::Principal> authenticate_token(std::string_view token) override {
        if (token == kToken) return user;
        return Status(Code::unauthenticated, "The token is not valid.");
    }
    Result<std::optional<meta::User>> find_user(std::string_view) override { return unused(); }
    Result<std::shared_ptr<service::Session>> open_session(const service::OpenSession &) override { return unused(); }
    void close_session(const std::shared_ptr<service::Session> &) override {}
    net::Task<Result<std::vector<sql::Statement>>> parse(std::string_view, sql::Context,
                                                         std::shared_ptr<service::Session>) override {
        co_return unused();
    }
    net::Task<Result<std::unique_ptr<service::ResultStream>>> execute(std::shared_ptr<service::Session>,
                                                                      service::ExecuteRequest) override {
        co_return unused();
    }
    net::Task<Result<ResultHeader>> describe(std::shared_ptr<service::Session>, const sql::Statement &,
                                             std::vector<uint32_t>) override {
        co_return unused();
    }

    net::Task<Result<service::StatementInfo>> submit(service::SubmitRequest request) override {
        submitted = request;
        if (request.workspace != workspace.slug && request.workspace != workspace.id.to_string()) {
            co_return Status(Code::not_found, "no workspace").with_name("workspace_not_found").with_sqlstate("3D000");
        }
        if (request.node && *request.node != node.id) {
            co_return Status(Code::not_found, "no such node").with_name("agent_not_found");
        }
        if (request.sql == "THROW") throw std::runtime_error("boom");
        if (request.sql == "FORBIDDEN") {
            co_return Status(Code::not_allowed, "ATTACH is not allowed.")
                .with_rule("kind_attach")
                .with_position(3)
                .with_hint("Don't.");
        }
        if (request.sql == "SELEC") co_return Status(Code::syntax_error, "syntax error").with_position(1);
        if (request.sql.size() > (16u << 20)) {
            co_return Status(Code::resource_exhausted, "too long")
                .with_name("program_limit_exceeded")
                .with_sqlstate("54000");
        }
        if (request.sql == "NO NODE") co_return Status(Code::unavailable, "No node.");
        service::StatementInfo info = make(request);
        statements[info.record.id] = info;
        if (request.sql == "SLOW") {
            co_await changed.wait_for(std::chrono::milliseconds(request.wait_ms));
            co_return statements[info.record.id];
        }
        co_return info;
    }

    net::Task<Result<service::StatementInfo>> status(const service::Principal &, const Uuid &id,
                                                     int64_t wait_ms) override {
        if (!statements.contains(id)) co_return unknown();
        if (!statements[id].is_terminal() && wait_ms > 0) {
            co_await changed.wait_for(std::chrono::milliseconds(wait_ms));
        }
        co_return statements[id];
    }
    // Rows {"n": offset} … of a result of row_count rows.
    net::Task<Result<service::RowsPage>> rows(const service::Principal &, const Uuid &id, uint64_t offset_rows,
                                              uint32_t limit_rows) override {
        if (!statements.contains(id)) co_return unknown();
        const service::StatementInfo &info = statements[id];
        if (info.record.status != meta::StatementStatus::done) {
            co_return Status(Code::failed_precondition,
                             "The statement is " + std::string(meta::status_name(info.record.status)));
        }
        service::RowsPage page;
        page.columns = info.columns;
        page.total_rows = info.record.has_result ? info.record.row_count.value_or(0) : 0;
        page.offset_rows = offset_rows;
        if (empty_pages) co_return page;
        page.rows_json = "[";
        for (uint64_t row = offset_rows; row < page.total_rows && page.count_rows < limit_rows;
             ++row, ++page.count_rows) {
            if (page.count_rows > 0) page.rows_json += ',';
            page.rows_json += "{\"n\":" + std::to_string(row) + "}";
        }
        page.rows_json += "]";
        co_return page;
    }
    net::Task<Result<std::unique_ptr<service::ResultStream>>> arrow(const service::Principal &,
                                                                    const Uuid &id) override {
        if (!statements.contains(id)) co_return unknown();
        std::unique_ptr<service::ResultStream> stream = std::make_unique<FakeStream>(changed.executor(), stream_plan);
        co_return std::move(stream);
    }
    net::Task<Status> cancel(const service::Principal &, const Uuid &id) override {
        if (!statements.contains(id)) co_return unknown();
        service::StatementInfo &info = statements[id];
        if (!info.is_terminal()) {
            info.record.status = meta::StatementStatus::cancelled;
            info.record.error = "cancelled";
            info.record.finished_us = info.record.started_us + 1'500'000;
            changed.notify();
        }
        co_return Status();
    }
    net::Task<Result<meta::StatementPage>> list(const service::Principal &, meta::StatementFilter filter) override {
        listed = filter;
        if (!filter.cursor.empty() && filter.cursor != "next") {
            co_return Status(Code::invalid_argument, "no such cursor").with_name("invalid_cursor");
        }
        meta::StatementPage page;
        for (const auto &[id, info] : statements) page.items.push_back(info.record);
        page.has_more = filter.cursor.empty();
        page.cursor = page.has_more ? "next" : "";
        co_return page;
    }
    net::Task<Result<std::string>> profile(const service::Principal &, const Uuid &id) override {
        if (!statements.contains(id)) co_return unknown();
        co_return std::string(R"({"stages":[]})");
    }

    std::vector<service::NodeInfo> nodes() const override { return {node}; }
    net::Task<Result<service::NodeInfo>> set_profile(service::Principal, std::string name,
                                                     std::string profile) override {
        if (name != node.name) co_return Status(Code::not_found, "there is no node '" + name + "'");
        node.profile = profile;
        co_return node;
    }
    net::Task<Result<service::NodeInfo>> drain_node(service::Principal, std::string name, bool drained) override {
        if (name != node.name) co_return Status(Code::not_found, "there is no node '" + name + "'");
        node.status = drained ? "draining" : "online";
        co_return node;
    }
    Result<std::vector<meta::Workspace>> workspaces(const service::Principal &) override {
        return std::vector{workspace};
    }
    Result<std::vector<meta::Catalog>> catalogs(const service::Principal &, std::string_view) override {
        meta::Catalog catalog;
        catalog.id = Uuid::from_name("lake");
        catalog.slug = "lake";
        catalog.workspace = workspace.id;
        catalog.is_default = true;
        return std::vector{catalog};
    }
    net::Task<Result<std::vector<service::SchemaInfo>>> schemas(const service::Principal &, std::string,
                                                                std::string catalog) override {
        if (catalog != "lake") co_return Status(Code::not_found, "no catalog").with_name("catalog_not_found");
        co_return std::vector<service::SchemaInfo>{{"main", 2, 1}, {"sales", 0, 0}};
    }
    net::Task<Result<std::vector<service::TableInfo>>> tables(const service::Principal &, std::string,
                                                              std::string catalog, std::string schema) override {
        if (catalog != "lake") co_return Status(Code::not_found, "no catalog").with_name("catalog_not_found");
        std::vector<service::TableInfo> out;
        if (schema == "main") {
            out.push_back({"main", "orders", false, 15, 2, 4096, 3});
            out.push_back({"main", "v \"q\"", true, 0, 0, 0, 0});
        }
        co_return out;
    }
    net::Task<Result<service::RouteExplanation>> explain_route(const service::Principal &, std::string_view,
                                                               std::string_view sql) override {
        if (sql == "FORBIDDEN") co_return Status(Code::not_allowed, "no").with_rule("r");
        service::RouteExplanation route;
        route.kind = "select";
        route.policy = "least_loaded";
        route.reason = "only one";
        route.node = node.name;
        route.candidates.push_back({node.name, 0.5, ""});
        co_return route;
    }
    net::Task<Result<meta::AuditPage>> audit(const service::Principal &who, meta::AuditFilter filter) override {
        audit_filter = filter;
        if (who.role != "admin") co_return Status(Code::permission_denied, "the audit is for admins");
        co_return audit_page;
    }
    meta::AuditFilter audit_filter;
    meta::AuditPage audit_page;
    bool ready() const override { return is_ready; }
    std::string metrics_text() override { return "roost_up 1\n"; }

    Result<std::string> staging_path(const service::Principal &, const Uuid &, std::string_view name) override {
        if (name.find('/') != std::string_view::npos || name == "..") {
            return Status(Code::invalid_argument, "not a file name");
        }
        return (staging / name).string();
    }
    net::Task<Result<service::StatementInfo>> run_import(service::ImportRequest request, int64_t) override {
        imported = request;
        service::SubmitRequest as_submit;
        as_submit.sql = "DDL";
        co_return make(as_submit);
    }
    void drop_staging(const Uuid &) override { ++dropped_staging; }

    void connection_opened(std::string_view) override { ++connections; }
    void connection_closed(std::string_view) override { --connections; }
    void auth_failed(std::string_view, std::string_view, std::string_view) override { ++auth_failures; }
    bool draining() const override { return is_draining; }

    meta::Workspace workspace;
    service::Principal user;
    service::NodeInfo node;
    service::SubmitRequest submitted;
    service::ImportRequest imported;
    meta::StatementFilter listed;
    std::map<Uuid, service::StatementInfo> statements;
    FakeStream::Plan stream_plan;
    std::filesystem::path staging;
    net::Event changed;
    bool is_ready = true, is_draining = false, empty_pages = false;
    std::atomic<int> connections = 0, auth_failures = 0, dropped_staging = 0;

private:
    static Status unused() { return Status(Code::internal, "not for this test"); }
    static Status unknown() { return Status(Code::not_found, "There is no such statement."); }

    // "ROWS n": done with n rows. "DDL": done without a grid. "FAIL": failed. "SLOW": running.
    service::StatementInfo make(const service::SubmitRequest &request) {
        service::StatementInfo info;
        meta::StatementRecord &record = info.record;
        record.id = Uuid::make();
        record.workspace = workspace.id;
        record.workspace_slug = workspace.slug;
        record.user = user.user_id;
        record.user_name = user.user_name;
        record.node = node.id;
        record.sql = request.sql;
        record.kind = sql::kind_name(sql::Kind::select);
        record.origin = "interactive";
        record.started_us = 1'700'000'000'123'456;
        record.running_us = record.started_us + 1000;
        record.finished_us = record.started_us + 1'500'000;
        record.status = meta::StatementStatus::done;
        if (request.sql == "SLOW") {
            record.status = meta::StatementStatus::running;
            record.finished_us = 0;
            info.progress = 0.25;
            info.wait = "waiting for memory, 3rd in line";
        } else if (request.sql == "FAIL") {
            record.status = meta::StatementStatus::failed;
            record.error = "Catalog Error: Table with name \"t\" does not exist!";
            record.error_code = "engine_error";
            record.sqlstate = "42P01";
        } else if (request.sql == "DDL") {
            record.kind = sql::kind_name(sql::Kind::create_table);
        } else {
            const uint64_t count =
                request.sql.starts_with("ROWS ") ? std::strtoull(request.sql.c_str() + 5, nullptr, 10) : 1;
            record.has_result = true;
            record.row_count = count;
            info.columns.push_back({.name = "n", .type = "INTEGER"});
            for (uint64_t row = 0; row < std::min<uint64_t>(count, request.first_page_rows); ++row) {
                info.first_page += (row == 0 ? "{\"n\":" : ",{\"n\":") + std::to_string(row) + "}";
            }
            info.first_page = "[" + info.first_page + "]";
        }
        return info;
    }
};

}  // namespace roost::http
