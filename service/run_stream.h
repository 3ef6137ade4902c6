// One statement under way: lease, routing, dispatch, refusals and the one retry of a read, frames, and the single end
// that history, metrics, log, lease and session all see. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "service/core.h"
#include "service/profile.h"
#include "service/result_stream.h"
#include "service/write_turns.h"

namespace roost::service {

struct RunOptions {
    Uuid id;  // nil: made here
    ResultFormat format = ResultFormat::pg_rows;
    uint32_t first_page_rows = 0;
    bool internal = false;
    std::optional<Uuid> node;  // the one that must run it, when no transaction pins it
    bool in_history = true;    // false: a part of something that has a record of its own
    // What the history has of it already; its id is the statement's. Unset: made here, written when it lasts.
    std::optional<meta::StatementRecord> record;
    std::function<void(Status)> end_durable;  // called on the meta store's thread when the record of its end is durable
    int64_t parse_us = 0;
};

// A statement of this session that has just come in, as the history has it.
meta::StatementRecord new_record(const Session &session, const std::string &catalog);

// What a client hears whose statement no node takes, for all of them are about to end.
Status all_stopping();

// What a client hears whose transaction went with its node.
Status lost_transaction();

class RunStream final : public ResultStream {
public:
    RunStream(Core &core, std::shared_ptr<Session> session, sql::Statement statement, StatementSpec spec,
              RunOptions options);
    ~RunStream() override;

    // Lease, route, dispatch. An error has settled the statement. header() and next() begin by themselves, so that who
    // holds the stream can cancel it from the start.
    net::Task<Status> begin();

    const Uuid &id() const override { return spec_.id; }
    net::Task<Result<ResultHeader>> header() override;
    net::Task<Result<std::optional<RowsFrame>>> next() override;
    const Completion &completion() const override { return completion_; }
    std::string tag(uint64_t rows) const override { return command_tag(statement_, completion_, rows); }
    void cancel(Status reason) override;

    const Session &session() const { return *session_; }
    bool outlives_its_node() const;
    bool commits_transaction() const { return spec_.transaction == TransactionAction::commit; }
    const meta::StatementRecord &record() const { return record_; }
    bool in_history() const { return options_.in_history; }
    const cluster::Progress *progress() const { return remote_ ? &remote_->progress() : nullptr; }
    // Called when the node reports progress and when the statement begins to run there.
    void on_progress(std::function<void()> callback) { progress_callback_ = std::move(callback); }
    // Brings the history up to date where it is behind: for statements that last longer than a moment.
    void record_state();
    int64_t age_us() const;

private:
    Status dispatch(std::optional<Uuid> avoid);
    Status send_to_next();
    Status pass_on();
    Status run_elsewhere();
    net::Task<Status> take_leases();
    net::Task<Status> take_turns();
    net::Task<Status> hold(std::set<std::string> names, std::vector<std::shared_ptr<WriteLease>> &held);
    bool is_on_postgres(const std::string &catalog) const;
    net::Task<Result<std::shared_ptr<WriteLease>>> wait_for_lease(std::string name);
    WriteTurns turns() const;
    net::Task<Result<net::Frame>> next_frame();
    net::Task<Status> explain_loss(Status lost);
    net::Task<Status> explain_commit(Status failure, bool over);
    net::Task<Status> try_again(Status conflict);
    bool may_have_committed() const;
    bool outgrew_in_commit(const Completion &completion) const;
    net::Task<bool> wrote_nothing();
    Status run_as_large();
    bool may_try_again(const net::Frame &frame) const;
    Status take_header(const net::Frame &frame);
    net::Task<Status> take_end(const net::Frame &frame);
    void watch_cancel(int64_t wait_ms);
    void note_progress();
    void note_running();
    void settle(Status status);
    void settle_placement(bool ok);
    void settle_session(const Status &status);
    void settle_record(const Status &status);
    bool is_autocommit() const { return spec_.transaction == TransactionAction::autocommit; }

    Core &core_;
    std::shared_ptr<Session> session_;
    sql::Statement statement_;
    StatementSpec spec_;
    RunOptions options_;
    uint64_t shape_ = 0;
    routing::Decision decision_;
    std::vector<placement::Ask> asks_;  // of decision_.candidates, in order
    size_t ask_ = 0;
    uint32_t retries_ = 0, refusals_ = 0, conflicts_ = 0;
    std::unique_ptr<cluster::RemoteStream> remote_;
    std::function<void()> progress_callback_;
    std::vector<std::shared_ptr<WriteLease>> leases_;  // of a statement of its own
    std::optional<ResultHeader> header_;
    bool header_given_ = false;
    uint64_t rows_given_ = 0;
    bool begun_ = false;
    bool ran_again_ = false;  // after it had changed nothing and shown nothing
    bool pins_ = false;       // the session's transaction is at this node because of this statement
    bool settled_ = false;
    bool closed_early_ = false;    // dropped before its end by a reader who wanted no more
    bool state_recorded_ = false;  // the history has record_ as it is
    Status cancel_reason_;
    bool gave_up_ = false;     // the node hears no cancel
    uint64_t node_joins_ = 0;  // of the node when the statement was sent to it
    net::Event changed_;
    std::unique_ptr<net::asio::steady_timer> cancel_guard_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for handlers that may come late
    bool took_effect_ = false;                                    // the catalog has its commit
    bool committed_unheard_ = false;                              // known to have committed, though its node is lost
    Completion completion_;
    meta::StatementRecord record_;
    GatewayTimings timings_;
    int64_t since_us_ = 0, dispatched_us_ = 0;
};

}  // namespace roost::service
