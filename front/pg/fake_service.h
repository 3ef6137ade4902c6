// A Service for this folder's tests: real parsing, no nodes. What a statement does is written in its text:
//   SELECT n AS rows [, size AS frame]   n rows of one int4 column "n" (1…n), in frames of at most `size` rows
//   … AS hang      after that many rows the result goes no further until it is cancelled
//   SELECT 'CODE' AS fail [after n]      fails with that SQLSTATE, after n rows when there is a number before it
//   writes                               nothing is kept; the log says what was asked
// All on the loop's thread.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "front/pg/message.h"
#include "front/pg/test_client.h"
#include "service/service.h"

namespace roost::pg::test {

class FakeService;

class FakeStream : public service::ResultStream {
public:
    FakeStream(FakeService &service, std::shared_ptr<service::Session> session, service::ExecuteRequest request);
    ~FakeStream() override;
    const Uuid &id() const override { return id_; }
    net::Task<Result<ResultHeader>> header() override;
    net::Task<Result<std::optional<service::RowsFrame>>> next() override;
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t rows) const override;
    void cancel(Status reason) override {
        if (cancelled_.ok()) cancelled_ = std::move(reason);
        changed_.notify();
    }

private:
    Status failure(Status status);
    net::Task<Status> hang();

    FakeService &service_;
    std::shared_ptr<service::Session> session_;
    service::ExecuteRequest request_;
    net::Event changed_;
    Status cancelled_;
    Completion completion_;
    Uuid id_;
    uint32_t rows_ = 0, sent_ = 0, frame_rows_ = 1000;
    bool hangs_ = false, ended_ = false;
    std::string fail_code_;
};

class FakeService : public service::Service {
public:
    explicit FakeService(net::asio::io_context &loop) : loop(loop) {
        user.id = Uuid::make();
        user.name = "ann";
        user.role = "admin";
        user.scram_verifier = scram_verifier("secret", "0123456789abcdef", 64);
    }

    net::asio::io_context &loop;
    meta::User user;
    std::vector<std::string>
        log;  // "execute TEXT", "describe TEXT", "dropped TEXT" (before its end), "close_session" …
    std::vector<std::vector<Param>> params;  // of each executed engine statement
    std::string column_name = "n";           // of every result
    uint32_t rows_max = UINT32_MAX;          // whatever a statement asks for
    int sessions_open = 0, connections = 0;
    bool is_draining = false;
    service::Session *last_session = nullptr;

    void note(std::string line) { log.push_back(std::move(line)); }

    Result<service::Principal> authenticate_token(std::string_view) override { return missing(); }
    Result<std::optional<meta::User>> find_user(std::string_view name) override {
        if (name == user.name) return std::optional<meta::User>(user);
        return std::optional<meta::User>();
    }
    Result<std::shared_ptr<service::Session>> open_session(const service::OpenSession &request) override {
        if (!request.catalog.empty() && request.catalog != "lake") {
            return Status(Code::not_found, "no such catalog").with_name("catalog_not_found").with_sqlstate("3D000");
        }
        auto session = std::make_shared<service::Session>();
        session->principal = request.principal;
        session->workspace = "main";
        session->settings.catalog = "lake";
        sessions_open++;
        last_session = session.get();
        return session;
    }
    void close_session(const std::shared_ptr<service::Session> &session) override {
        if (std::exchange(session->closed, true)) return;
        sessions_open--;
        note("close_session");
    }
    net::Task<Result<std::vector<sql::Statement>>> parse(std::string_view text, sql::Context,
                                                         std::shared_ptr<service::Session>) override {
        co_return sql::parse(text);
    }
    net::Task<Result<std::unique_ptr<service::ResultStream>>> execute(std::shared_ptr<service::Session> session,
                                                                      service::ExecuteRequest request) override {
        note("execute " + request.statement.text);
        switch (request.statement.kind) {
            case sql::Kind::begin:
                session->transaction = service::TransactionState::open;
                break;
            case sql::Kind::commit:
            case sql::Kind::rollback:
                session->transaction = service::TransactionState::idle;
                break;
            default:
                params.push_back(request.params);
        }
        if (commit_error.ok() || request.statement.kind != sql::Kind::commit) {
            co_return std::make_unique<FakeStream>(*this, std::move(session), std::move(request));
        }
        co_return commit_error;
    }
    net::Task<Result<ResultHeader>> describe(std::shared_ptr<service::Session>, const sql::Statement &statement,
                                             std::vector<uint32_t>) override {
        note("describe " + statement.text);
        if (const std::string code = fail_code(statement.text); !code.empty()) co_return error_of(code);
        ResultHeader header = header_of(statement);
        header.param_oids.assign(statement.param_count, 23);
        co_return header;
    }
    Status commit_error;

    // The word before "AS word", as text.
    static std::string setting(const std::string &text, const std::string &word) {
        const size_t at = text.find(" AS " + word);
        if (at == std::string::npos) return "";
        const size_t from = text.find_last_of(" ,(", at - 1) + 1;
        return text.substr(from, at - from);
    }
    static std::string fail_code(const std::string &text) {
        const std::string quoted = setting(text, "fail");
        const bool is_code = quoted.size() == 7 && std::all_of(quoted.begin() + 1, quoted.end() - 1, [](char c) {
                                 return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                             });
        return quoted.empty() ? "" : is_code ? quoted.substr(1, 5) : "42601";
    }
    static Status error_of(const std::string &code) {
        return Status(Code::engine_error, "failed as asked").with_sqlstate(code).with_position(8);
    }
    ResultHeader header_of(const sql::Statement &statement) const {
        ResultHeader header;
        header.has_grid = statement.kind == sql::Kind::select || statement.returning;
        if (!header.has_grid) return header;
        header.columns = {{.name = column_name, .type = "INTEGER", .pg_oid = 23, .pg_typlen = 4, .pg_typmod = -1}};
        return header;
    }

    net::Task<Result<service::StatementInfo>> submit(service::SubmitRequest) override { co_return missing(); }
    net::Task<Result<service::StatementInfo>> status(const service::Principal &, const Uuid &, int64_t) override {
        co_return missing();
    }
    net::Task<Result<service::RowsPage>> rows(const service::Principal &, const Uuid &, uint64_t, uint32_t) override {
        co_return missing();
    }
    net::Task<Result<std::unique_ptr<service::ResultStream>>> arrow(const service::Principal &, const Uuid &) override {
        co_return missing();
    }
    net::Task<Status> cancel(const service::Principal &, const Uuid &) override { co_return missing(); }
    net::Task<Result<meta::StatementPage>> list(const service::Principal &, meta::StatementFilter) override {
        co_return missing();
    }
    net::Task<Result<std::string>> profile(const service::Principal &, const Uuid &) override { co_return missing(); }
    std::vector<service::NodeInfo> nodes() const override { return {}; }
    net::Task<Result<service::NodeInfo>> set_profile(service::Principal, std::string, std::string) override {
        co_return missing();
    }
    net::Task<Result<service::NodeInfo>> drain_node(service::Principal, std::string, bool) override {
        co_return Status(Code::unimplemented, "not here");
    }
    Result<std::vector<meta::Workspace>> workspaces(const service::Principal &) override {
        return std::vector<meta::Workspace>{{.id = {}, .slug = "main", .name = "main", .default_catalog = "lake"}};
    }
    Result<std::vector<meta::Catalog>> catalogs(const service::Principal &, std::string_view) override {
        return missing();
    }
    net::Task<Result<std::vector<service::SchemaInfo>>> schemas(const service::Principal &, std::string,
                                                                std::string) override {
        co_return Status(Code::unimplemented, "not asked for here");
    }
    net::Task<Result<std::vector<service::TableInfo>>> tables(const service::Principal &, std::string, std::string,
                                                              std::string) override {
        co_return Status(Code::unimplemented, "not asked for here");
    }
    net::Task<Result<service::RouteExplanation>> explain_route(const service::Principal &, std::string_view,
                                                               std::string_view) override {
        co_return missing();
    }
    net::Task<Result<meta::AuditPage>> audit(const service::Principal &who, meta::AuditFilter filter) override {
        audit_filter = filter;
        if (who.role != "admin") co_return Status(Code::permission_denied, "the audit is for admins");
        co_return audit_page;
    }
    meta::AuditFilter audit_filter;
    meta::AuditPage audit_page;
    bool ready() const override { return true; }
    std::string metrics_text() override { return ""; }
    Result<std::string> staging_path(const service::Principal &, const Uuid &, std::string_view) override {
        return missing();
    }
    net::Task<Result<service::StatementInfo>> run_import(service::ImportRequest, int64_t) override {
        co_return missing();
    }
    void drop_staging(const Uuid &) override {}
    void connection_opened(std::string_view) override { connections++; }
    void connection_closed(std::string_view) override { connections--; }
    void auth_failed(std::string_view, std::string_view name, std::string_view) override {
        note("auth_failed " + std::string(name));
    }
    bool draining() const override { return is_draining; }

private:
    static Status missing() { return Status(Code::unimplemented, "not part of the fake"); }
};

inline FakeStream::FakeStream(FakeService &service, std::shared_ptr<service::Session> session,
                              service::ExecuteRequest request)
    : service_(service),
      session_(std::move(session)),
      request_(std::move(request)),
      changed_(service.loop.get_executor()) {
    const std::string &text = request_.statement.text;
    const auto number = [&](const char *word, uint32_t otherwise) {
        const std::string value = FakeService::setting(text, word);
        uint32_t count = otherwise;  // also for what is no number
        std::from_chars(value.data(), value.data() + value.size(), count);
        return std::min(count, service_.rows_max);
    };
    hangs_ = text.find(" AS hang") != std::string::npos;
    rows_ = number("rows", number("hang", 1));
    frame_rows_ = std::max(1U, number("frame", 1000));
    fail_code_ = FakeService::fail_code(text);
    if (request_.statement.kind == sql::Kind::describe) fail_code_ = "42P01";  // there are no tables
}

inline FakeStream::~FakeStream() {
    if (!ended_) service_.note("dropped " + request_.statement.text);
}

inline Status FakeStream::failure(Status status) {
    ended_ = true;
    if (session_->transaction == service::TransactionState::open)
        session_->transaction = service::TransactionState::failed;
    completion_.status = status;
    return status;
}

inline net::Task<Status> FakeStream::hang() {
    service_.note("hangs");
    while (cancelled_.ok()) co_await changed_.wait();
    co_return failure(cancelled_);
}

inline net::Task<Result<ResultHeader>> FakeStream::header() {
    const bool is_control = sql::is_session_command(request_.statement.kind);
    if (is_control) co_return ResultHeader{};
    if (hangs_ && rows_ == 0) co_return co_await hang();
    if (!fail_code_.empty() && FakeService::setting(request_.statement.text, "rows").empty()) {
        co_return failure(FakeService::error_of(fail_code_));
    }
    co_return service_.header_of(request_.statement);
}

inline net::Task<Result<std::optional<service::RowsFrame>>> FakeStream::next() {
    const bool has_rows = service_.header_of(request_.statement).has_grid;
    if (!has_rows || (sent_ == rows_ && !hangs_ && fail_code_.empty())) {
        ended_ = true;
        completion_.rows = sent_;
        co_return std::optional<service::RowsFrame>();
    }
    if (!cancelled_.ok()) co_return failure(cancelled_);
    if (sent_ == rows_ && hangs_) co_return co_await hang();
    if (sent_ == rows_) co_return failure(FakeService::error_of(fail_code_));
    service::RowsFrame frame;
    while (sent_ < rows_ && frame.rows < frame_rows_) {
        frame.rows++;
        put_text_row(frame.bytes, {std::to_string(++sent_)});
    }
    co_return std::optional<service::RowsFrame>(std::move(frame));
}

inline std::string FakeStream::tag(uint64_t rows) const {
    switch (request_.statement.kind) {
        case sql::Kind::insert:
            return "INSERT 0 1";
        case sql::Kind::create_table:
            return "CREATE TABLE";
        default:
            return "SELECT " + std::to_string(rows);
    }
}

}  // namespace roost::pg::test
