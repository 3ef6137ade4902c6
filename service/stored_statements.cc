// Statements whose results the node keeps: submit, follow, page, stream as Arrow, cancel, list.
#include <algorithm>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "service/gateway_service.h"

namespace roost::service {

namespace asio = net::asio;

GatewayService::EntryPtr GatewayService::make_entry(const std::shared_ptr<Session> &session, const std::string &sql,
                                                    std::string kind, bool writes) {
    auto entry = std::make_shared<Entry>(core_->loop.get_executor());
    meta::StatementRecord &record = entry->info.record;
    record = new_record(*session, session->settings.catalog);
    record.id = Uuid::make();
    record.sql = sql;
    record.kind = std::move(kind);
    record.writes = writes;
    record.started_us = core_->clock.wall_us();
    if (session->origin == "session") record.session = session->id;
    entries_[record.id] = entry;
    core_->meta.record_statement(record, durable_callback(entry, Record::start));
    return entry;
}

std::function<void(Status)> GatewayService::durable_callback(const EntryPtr &entry, Record which) {
    // The meta store outlives the service, and the loop and the log both.
    return [loop = &core_->loop, log = &core_->log, weak = std::weak_ptr<Entry>(entry), which](Status status) {
        asio::post(*loop, [log, weak, which, status = std::move(status)] {
            if (!status.ok()) log->error("history_not_written", {{"error", status.message()}});
            const EntryPtr found = weak.lock();
            if (!found) return;
            // A history that can't be written is logged, not a reason to refuse work.
            found->start_durable = true;
            if (which == Record::end) found->end_durable = true;
            found->changed.notify();
        });
    };
}

net::Task<StatementInfo> GatewayService::wait_for(EntryPtr entry, int64_t wait_ms) {
    const int64_t deadline_us = core_->clock.monotonic_us() + wait_ms * 1000;
    for (;;) {
        if (entry->info.is_terminal() && entry->end_durable) break;
        const int64_t left_ms = (deadline_us - core_->clock.monotonic_us() + 999) / 1000;
        if (left_ms <= 0 && entry->start_durable && !entry->info.is_terminal()) break;
        co_await entry->changed.wait_for(std::chrono::milliseconds(left_ms > 0 ? left_ms : 1000));
    }
    co_return entry->info;
}

Status GatewayService::check_node(const std::optional<Uuid> &node) const {
    if (!node || core_->hub.members().contains(*node)) return Status();
    if (!known_members_.contains(*node)) {
        return Status(Code::not_found, "there is no node " + node->to_string()).with_name("agent_not_found");
    }
    return Status(Code::invalid_argument, "the node " + node->to_string() + " is away")
        .with_name("compute_unavailable")
        .with_hint("run the statement again when it is back, or let roost choose a node");
}

net::Task<Result<StatementInfo>> GatewayService::submit(SubmitRequest request) {
    if (core_->draining) co_return Status(Code::unavailable, "roost is shutting down").with_sqlstate("57P03");
    if (Status status = check_node(request.node); !status.ok()) co_return status;
    const int64_t since_us = core_->clock.monotonic_us();
    auto session = open_session({.principal = request.principal,
                                 .workspace = request.workspace,
                                 .catalog = request.catalog,
                                 .front = "http",
                                 .origin = "interactive",
                                 .client_name = request.client_name,
                                 .peer = request.peer});
    if (!session.ok()) co_return session.status();
    auto statements = co_await parse(request.sql, sql::Context::oneshot, *session);
    if (!statements.ok()) {
        close_session(*session);
        co_return statements.status();
    }
    if (statements->size() > 1 && !request.params.empty()) {
        close_session(*session);
        co_return Status(Code::invalid_argument,
                         "parameters are for a single statement; this text has " + std::to_string(statements->size()));
    }
    const int64_t wait_ms = request.wait_ms;
    const uint32_t first_page_rows = request.first_page_rows;
    const bool writes =
        std::ranges::any_of(*statements, [](const auto &statement) { return sql::changes_lake(statement.kind); });
    const EntryPtr entry =
        make_entry(*session, request.sql, std::string(sql::kind_name(statements->back().kind)), writes);
    core_->metrics.stage("parse", static_cast<double>(core_->clock.monotonic_us() - since_us) / 1e6);
    asio::co_spawn(core_->loop, run_submitted(entry, *session, std::move(*statements), std::move(request)),
                   asio::detached);
    StatementInfo info = co_await wait_for(entry, wait_ms);
    if (!info.first_page.empty()) {
        core_->metrics.bytes_sent("http", info.first_page.size());
        core_->metrics.rows_sent("http", std::min<uint64_t>(first_page_rows, info.record.row_count.value_or(0)));
    }
    co_return info;
}

net::Task<void> GatewayService::run_submitted(EntryPtr entry, std::shared_ptr<Session> session,
                                              std::vector<sql::Statement> statements, SubmitRequest request) {
    Status status;
    for (size_t i = 0; i < statements.size() && status.ok(); ++i) {
        const bool last = i + 1 == statements.size();
        RunOptions options;
        options.node = request.node;
        options.in_history = last;
        if (last) {
            options.record = entry->info.record;
            options.format = ResultFormat::stored;
            options.first_page_rows = request.first_page_rows;
            options.end_durable = durable_callback(entry, Record::end);
        }
        ExecuteRequest execute;
        execute.statement = std::move(statements[i]);
        if (last) execute.params = std::move(request.params);
        execute.timeout_ms = request.timeout_ms;
        status = entry->cancel_reason.ok()
                     ? co_await run_one(entry, session, std::move(execute), std::move(options), last)
                     : entry->cancel_reason;
    }
    finish_entry(entry, status);
    close_session(session);
}

// Runs one statement to its end. The entry shows the last one.
net::Task<Status> GatewayService::run_one(EntryPtr entry, std::shared_ptr<Session> session, ExecuteRequest request,
                                          RunOptions options, bool last) {
    if (request.statement.kind == sql::Kind::empty) {
        co_return Status(Code::syntax_error, "the text holds no statement");
    }
    auto reach = co_await find_reach(session, request.statement);
    if (!reach.ok()) co_return reach.status();
    auto made = make_run(session, std::move(request), std::move(*reach), std::move(options));
    if (!made.ok()) co_return made.status();
    if (last) entry->ends_recorded = true;
    RunStream &run = **made;
    entry->running = &run;
    watch_progress(entry, run);
    Status status = co_await run.begin();
    if (status.ok()) {
        entry->info.record.node = run.record().node;
        auto header = co_await run.header();
        status = header.status();
        if (header.ok() && last) entry->info.columns = header->columns;
    }
    while (status.ok()) {
        auto frame = co_await run.next();
        status = frame.status();
        if (frame.ok() && !frame->has_value()) break;
    }
    entry->running = nullptr;
    if (last) {
        entry->info.record = run.record();
        if (status.ok()) entry->info.first_page = run.completion().first_page;
    }
    co_return status;
}

void GatewayService::watch_progress(const EntryPtr &entry, RunStream &run) {
    run.on_progress([this, weak = std::weak_ptr<Entry>(entry)] {
        const EntryPtr found = weak.lock();
        if (!found || !found->running || !found->running->progress()) return;
        const meta::StatementRecord &of_run = found->running->record();
        meta::StatementRecord &record = found->info.record;
        record.node = of_run.node;
        if (record.status == meta::StatementStatus::queued && of_run.status == meta::StatementStatus::running) {
            record.status = of_run.status;
            record.running_us = of_run.running_us;
            // Of a part only the whole has a record.
            if (!found->running->in_history()) core_->meta.record_statement(record, {});
        }
        const cluster::Progress &progress = *found->running->progress();
        found->info.progress = progress.percent;
        found->info.wait.clear();
        if (progress.phase == cluster::Progress::Phase::waiting) {
            const std::string place = std::to_string(progress.place);
            const char *ending = progress.place == 1   ? "st"
                                 : progress.place == 2 ? "nd"
                                 : progress.place == 3 ? "rd"
                                                       : "th";
            found->info.wait = "waiting for memory, " + place + ending + " in line";
        }
    });
}

void GatewayService::finish_entry(const EntryPtr &entry, const Status &status) {
    meta::StatementRecord &record = entry->info.record;
    if (!status.ok()) {
        record.status =
            status.code() == Code::cancelled ? meta::StatementStatus::cancelled : meta::StatementStatus::failed;
        record.error = error_text(status);
        record.error_code = status.name();
        record.sqlstate = status.sqlstate();
        record.has_result = false;
        if (record.finished_us == 0) record.finished_us = core_->clock.wall_us();
        // Failed before its last statement began.
        if (!entry->ends_recorded) core_->meta.record_statement(record, durable_callback(entry, Record::end));
    }
    entry->info.wait.clear();
    entry->info.progress = status.ok() ? 100 : -1;
    entry->changed.notify();
    finished_entries_.push_back(record.id);
    while (finished_entries_.size() > core_->limits.stored_entries_max) {
        entries_.erase(finished_entries_.front());
        finished_entries_.pop_front();
    }
}

Result<GatewayService::EntryPtr> GatewayService::find_entry(const Principal &who, const Uuid &id) {
    const auto missing = [&] { return Status(Code::not_found, "there is no query " + id.to_string()); };
    EntryPtr entry;
    if (const auto found = entries_.find(id); found != entries_.end()) {
        entry = found->second;
    } else {
        ROOST_ASSIGN_OR_RETURN(auto record, core_->meta.find_statement(id));
        if (!record) return missing();
        entry = std::make_shared<Entry>(core_->loop.get_executor());
        entry->start_durable = entry->end_durable = true;
        entry->info.record = std::move(*record);
        entry->info.columns = parse_column_schema(entry->info.record.column_schema);
    }
    if (entry->info.record.user != who.user_id && who.role != "admin") return missing();
    return entry;
}

net::Task<Result<StatementInfo>> GatewayService::status(const Principal &who, const Uuid &id, int64_t wait_ms) {
    auto entry = find_entry(who, id);
    if (!entry.ok()) co_return entry.status();
    // One that is not among the entries (a streaming front's) can't be waited for here.
    if (!entries_.contains(id)) wait_ms = 0;
    co_return co_await wait_for(*entry, wait_ms);
}

Result<GatewayService::EntryPtr> GatewayService::finished_entry(const Principal &who, const Uuid &id) {
    ROOST_ASSIGN_OR_RETURN(EntryPtr entry, find_entry(who, id));
    const meta::StatementRecord &record = entry->info.record;
    if (!entry->info.is_terminal()) {
        return Status(Code::failed_precondition, "the query is still " + std::string(meta::status_name(record.status)))
            .with_name("conflict");
    }
    if (record.status != meta::StatementStatus::done) {
        return Status(Code::failed_precondition,
                      "the query " + std::string(meta::status_name(record.status)) + ": " + record.error)
            .with_name("conflict");
    }
    return entry;
}

net::Task<Result<RowsPage>> GatewayService::rows(const Principal &who, const Uuid &id, uint64_t offset_rows,
                                                 uint32_t limit_rows) {
    auto entry = finished_entry(who, id);
    if (!entry.ok()) co_return entry.status();
    const StatementInfo &info = (*entry)->info;
    RowsPage page;
    page.rows_json = "[]";
    if (!info.record.has_result) co_return page;
    page.columns = info.columns;
    page.total_rows = info.record.row_count.value_or(0);
    page.offset_rows = std::min(offset_rows, page.total_rows);
    page.count_rows = static_cast<uint32_t>(std::min<uint64_t>(limit_rows, page.total_rows - page.offset_rows));
    if (page.count_rows == 0) co_return page;
    const cluster::ReadPage request{id, page.offset_rows, page.count_rows};
    auto remote = core_->hub.open(info.record.node, net::FrameType::read_page, cluster::encode(request));
    if (!remote.ok()) {
        co_return Status(Code::unavailable, "the node that keeps this result is away")
            .with_name("result_unavailable")
            .with_hint("ask again when it is back, or run the query again");
    }
    std::string json;
    for (;;) {
        auto frame = co_await (*remote)->next();
        if (!frame.ok()) co_return frame.status();
        if (frame->type == net::FrameType::rows) json += frame->payload;
        if (frame->type != net::FrameType::end) continue;
        auto completion = cluster::decode_completion(frame->payload);
        if (!completion.ok()) co_return completion.status();
        if (!completion->status.ok()) co_return completion->status;
        break;
    }
    page.rows_json = std::move(json);
    core_->metrics.bytes_sent("http", page.rows_json.size());
    core_->metrics.rows_sent("http", page.count_rows);
    co_return page;
}

namespace {

// A stored result as bytes of an Arrow IPC stream.
class ArrowStream final : public ResultStream {
public:
    ArrowStream(Uuid id, ResultHeader header, std::unique_ptr<cluster::RemoteStream> remote, obs::Metrics &metrics)
        : id_(id), header_(std::move(header)), remote_(std::move(remote)), metrics_(metrics) {}
    const Uuid &id() const override { return id_; }
    net::Task<Result<ResultHeader>> header() override { co_return header_; }
    net::Task<Result<std::optional<RowsFrame>>> next() override {
        if (!remote_) co_return std::optional<RowsFrame>();
        for (;;) {
            auto frame = co_await remote_->next();
            if (!frame.ok()) co_return frame.status();
            if (frame->type == net::FrameType::rows) {
                metrics_.bytes_sent("http", frame->payload.size());
                metrics_.rows_sent("http", frame->rows);
                co_return std::optional<RowsFrame>(RowsFrame{frame->rows, std::move(frame->payload)});
            }
            if (frame->type != net::FrameType::end) continue;
            auto completion = cluster::decode_completion(frame->payload);
            if (!completion.ok()) co_return completion.status();
            completion_ = std::move(*completion);
            if (!completion_.status.ok()) co_return completion_.status;
            co_return std::optional<RowsFrame>();
        }
    }
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t) const override { return ""; }
    void cancel(Status reason) override {
        if (remote_) remote_->cancel(reason);
    }

private:
    Uuid id_;
    ResultHeader header_;
    std::unique_ptr<cluster::RemoteStream> remote_;
    obs::Metrics &metrics_;
    Completion completion_;
};

}  // namespace

net::Task<Result<std::unique_ptr<ResultStream>>> GatewayService::arrow(const Principal &who, const Uuid &id) {
    auto entry = finished_entry(who, id);
    if (!entry.ok()) co_return entry.status();
    const StatementInfo &info = (*entry)->info;
    ResultHeader header{info.record.has_result, info.columns, {}};
    if (!header.has_grid) co_return std::make_unique<ArrowStream>(id, std::move(header), nullptr, core_->metrics);
    auto remote = core_->hub.open(info.record.node, net::FrameType::open_arrow, cluster::encode_id(id));
    if (!remote.ok()) {
        co_return Status(Code::unavailable, "the node that keeps this result is away").with_name("result_unavailable");
    }
    co_return std::make_unique<ArrowStream>(id, std::move(header), std::move(*remote), core_->metrics);
}

net::Task<Status> GatewayService::cancel(const Principal &who, const Uuid &id) {
    auto entry = find_entry(who, id);
    if (!entry.ok()) co_return entry.status();
    const Status reason(Code::cancelled, "canceling statement due to user request");
    if (entries_.contains(id)) {
        if ((*entry)->info.is_terminal()) co_return Status();
        if ((*entry)->cancel_reason.ok()) (*entry)->cancel_reason = reason;
        if ((*entry)->running) (*entry)->running->cancel(reason);
        if ((*entry)->queued) finish_entry(*entry, reason);
        co_return Status();
    }
    // A streaming front's statement, cancelled by its id.
    for (RunStream *run : core_->running) {
        if (run->id() == id) {
            run->cancel(reason);
            break;
        }
    }
    co_return Status();
}

net::Task<Result<meta::StatementPage>> GatewayService::list(const Principal &who, meta::StatementFilter filter) {
    if (who.role != "admin") filter.user = who.user_id;
    for (RunStream *run : core_->running) run->record_state();
    co_return co_await core_->blocking([this, filter = std::move(filter)]() -> Result<meta::StatementPage> {
        ROOST_RETURN_IF_ERROR(core_->meta.flush());
        return core_->meta.list_statements(filter);
    });
}

net::Task<Result<std::string>> GatewayService::profile(const Principal &who, const Uuid &id) {
    auto entry = find_entry(who, id);
    if (!entry.ok()) co_return entry.status();
    const std::string &profile = (*entry)->info.record.profile;
    co_return profile.empty() ? std::string("null") : profile;
}

}  // namespace roost::service
