#include "service/run_stream.h"

#include <algorithm>
#include <utility>

namespace roost::service {

using net::FrameType;

namespace {

std::string_view metric_status(const Status &status) {
    if (status.ok()) return "done";
    if (status.code() == Code::cancelled) return "cancelled";
    if (status.code() == Code::timeout) return "timeout";
    return "failed";
}

bool has_row_count(sql::Kind kind) {
    using sql::Kind;
    return kind == Kind::insert || kind == Kind::update || kind == Kind::delete_rows || kind == Kind::merge ||
           kind == Kind::create_table_as;
}

// The first wait after a conflict; it doubles.
constexpr int64_t kConflictWaitMs = 20;
// Tables of one transaction; of more the writer turns stale.
constexpr size_t kWrittenUnitsMax = 256;
// A cancelled commit is waited for so much longer than another statement.
constexpr int64_t kCommitPatience = 6;

double seconds(int64_t us) { return static_cast<double>(us) / 1e6; }

}  // namespace

void Core::remember_unsettled(UnsettledCommit commit) {
    if (unsettled.size() >= limits.unsettled_max) unsettled.pop_front();
    unsettled.push_back(std::move(commit));
}

Status all_stopping() {
    return Status(Code::unavailable, "every node is shutting down")
        .with_name("no_nodes")
        .with_retryable(true)
        .with_hint("see `roost nodes`; run the statement again when a node is back");
}

Status lost_transaction() {
    return Status(Code::unavailable, "the node that held this transaction was lost, and the transaction with it")
        .with_hint("roll back and run the transaction again");
}

meta::StatementRecord new_record(const Session &session, const std::string &catalog) {
    meta::StatementRecord record;
    record.workspace = session.workspace_id;
    record.workspace_slug = session.workspace;
    record.user = session.principal.user_id;
    record.user_name = session.principal.user_name;
    record.catalog = catalog;
    record.front = session.front;
    record.origin = session.origin;
    return record;
}

RunStream::RunStream(Core &core, std::shared_ptr<Session> session, sql::Statement statement, StatementSpec spec,
                     RunOptions options)
    : core_(core),
      session_(std::move(session)),
      statement_(std::move(statement)),
      spec_(std::move(spec)),
      options_(std::move(options)),
      changed_(core.loop.get_executor()) {
    since_us_ = core_.clock.monotonic_us();
    timings_.parse_us = options_.parse_us;
    spec_.id = options_.record ? options_.record->id : options_.id.is_nil() ? Uuid::make() : options_.id;
    spec_.format = options_.format;
    spec_.first_page_rows = options_.first_page_rows;
    spec_.internal = options_.internal;
    spec_.admission_wait_ms = core_.limits.admission_wait_ms;
    shape_ = statement_.shape != 0 ? statement_.shape : sql::fingerprint(statement_.text);
    spec_.shape_is_large = core_.shapes.is_large(shape_);
    spec_.shape = shape_;
    spec_.user = session_->principal.user_name;
    const auto group = core_.limits.group_of_user.find(spec_.user);
    if (group != core_.limits.group_of_user.end()) spec_.group = group->second;
    if (options_.record) {
        record_ = std::move(*options_.record);
        state_recorded_ = true;
    } else {
        record_ = new_record(*session_, written_catalog(spec_));
        record_.id = spec_.id;
        if (session_->front == "pg") record_.session = session_->id;
        record_.sql = statement_.text;
        record_.kind = sql::kind_name(statement_.kind);
        record_.started_us = core_.clock.wall_us();
    }
    record_.writes = record_.writes || spec_.writes;
    session_->active++;
    core_.running.insert(this);
    core_.metrics.statements_in_flight(static_cast<double>(core_.running.size()));
}

RunStream::~RunStream() {
    if (settled_) return;
    // A reader that has seen enough of a read (a closed portal) harms no transaction, here or on the node.
    closed_early_ = cancel_reason_.ok() && !spec_.writes && spec_.transaction == TransactionAction::in_session;
    if (closed_early_ && remote_) {
        remote_->cancel(Status(Code::cancelled, "the reader has seen enough").with_name(std::string(kReaderLeft)));
    }
    settle(cancel_reason_.ok() ? Status(Code::cancelled, "the client has gone") : cancel_reason_);
}

int64_t RunStream::age_us() const { return core_.clock.monotonic_us() - since_us_; }

void RunStream::record_state() {
    if (state_recorded_ || settled_ || !options_.in_history) return;
    state_recorded_ = true;
    core_.meta.record_statement(record_, {});
}

void RunStream::note_progress() {
    if (remote_->progress().phase == cluster::Progress::Phase::running) note_running();
    if (progress_callback_) progress_callback_();
}

// Admitted and begun on its node: the node says so, or has sent something of the result.
void RunStream::note_running() {
    if (record_.status != meta::StatementStatus::queued) return;
    record_.status = meta::StatementStatus::running;
    record_.running_us = core_.clock.wall_us();
    state_recorded_ = false;
}

net::Task<Status> RunStream::begin() {
    begun_ = true;
    Status status = cancel_reason_.ok() ? co_await take_leases() : cancel_reason_;
    if (status.ok()) {
        const int64_t route_since_us = core_.clock.monotonic_us();
        status = dispatch(std::nullopt);
        timings_.route_us = core_.clock.monotonic_us() - route_since_us;
    }
    if (!status.ok()) {
        settle(status);
    } else if (spec_.transaction == TransactionAction::in_session && !spec_.writes) {
        session_->transaction_has_read = true;
    }
    co_return status;
}

net::Task<Status> RunStream::take_leases() {
    const std::string &catalog = written_catalog(spec_);
    if (spec_.writes && spec_.transaction == TransactionAction::in_session) {
        session_->wrote = true;
        session_->write_catalog = catalog;
    }
    if (is_on_postgres(catalog)) co_return co_await take_turns();
    if (!spec_.writes || !session_->leases.empty()) co_return Status();
    auto lease = co_await wait_for_lease(catalog);
    if (!lease.ok()) co_return lease.status();
    if (is_autocommit()) {
        leases_.push_back(std::move(*lease));
        co_return Status();
    }
    if (session_->transaction_has_read && core_.leases->commits(catalog) != session_->begin_commits[catalog]) {
        co_return Status(Code::conflict, "could not serialize access: catalog '" + catalog +
                                             "' was changed after this transaction had read from it")
            .with_hint("run the transaction again; one that begins with its write waits for its turn instead");
    }
    session_->leases.push_back(std::move(*lease));
    co_return Status();
}

net::Task<Result<std::shared_ptr<WriteLease>>> RunStream::wait_for_lease(std::string name) {
    const int64_t since_us = core_.clock.monotonic_us();
    auto lease =
        co_await core_.leases->acquire(std::move(name), core_.limits.admission_wait_ms, changed_, cancel_reason_);
    const int64_t waited_us = core_.clock.monotonic_us() - since_us;
    timings_.lease_us += waited_us;
    core_.metrics.write_lease_wait(seconds(waited_us));
    if (lease.ok() && !cancel_reason_.ok()) co_return cancel_reason_;
    co_return lease;
}

WriteTurns RunStream::turns() const {
    if (!spec_.writes || spec_.transaction == TransactionAction::commit) return {};
    const std::string &catalog = written_catalog(spec_);
    return turns_of(statement_, catalog, spec_.settings, core_.mirrors.current(catalog).get());
}

// Only who has read nothing yet waits, and in the order of names: so nobody waits for somebody who waits for him, and
// who was waited for has not outdated what the waiter knows.
net::Task<Status> RunStream::take_turns() {
    const WriteTurns own = turns();
    if (spec_.transaction == TransactionAction::in_session) {
        session_->changes.insert(session_->changes.end(), own.names.begin(), own.names.end());
    }
    if (!is_autocommit() && (session_->pinned_node || session_->transaction_read_only)) co_return Status();
    std::set<std::string> wanted;
    for (const std::string &name : own.names) {
        if (own.always || core_.leases->is_held(name)) wanted.insert(name);
    }
    if (!is_autocommit()) {
        const std::vector<std::string> lost = std::exchange(session_->lost_turns, {});
        wanted.insert(lost.begin(), lost.end());
    }
    co_return co_await hold(std::move(wanted), is_autocommit() ? leases_ : session_->leases);
}

net::Task<Status> RunStream::hold(std::set<std::string> names, std::vector<std::shared_ptr<WriteLease>> &held) {
    for (const std::string &name : names) {
        auto lease = co_await wait_for_lease(name);
        if (!lease.ok()) co_return lease.status();
        held.push_back(std::move(*lease));
    }
    co_return Status();
}

bool RunStream::is_on_postgres(const std::string &catalog) const {
    const auto lake = core_.lakes.find(catalog);
    return lake != core_.lakes.end() && lake->second.on_postgres;
}

Status RunStream::dispatch(std::optional<Uuid> avoid) {
    // Of an earlier decision nothing is warm: its node was lost, or the statement lost a race.
    core_.policy->ended(decision_, {});
    const routing::FoundTables found = core_.tables_of(statement_, spec_.settings);
    routing::StatementFeatures features;
    features.tables = found.uses;
    features.reads = statement_.reads;
    features.writes = statement_.writes;
    features.avoid = avoid;
    features.pinned_node = is_autocommit() ? options_.node : session_->pinned_node;
    decision_ = core_.policy->decide(core_.snapshot(), features);
    core_.metrics.routed(decision_.reason);
    asks_ = placement::asks_of(decision_.candidates.size(), decision_.near, decision_.patience_us);
    ask_ = 0;
    return send_to_next();
}

// Asks asks_[ask_…]: the first that is connected.
Status RunStream::send_to_next() {
    for (; ask_ < asks_.size(); ask_++) {
        const placement::Ask &ask = asks_[ask_];
        spec_.no_wait = ask.wait_us != placement::Ask::kAsLongAsItTakes;
        spec_.patience_us = spec_.no_wait ? ask.wait_us : 0;
        auto remote = core_.hub.open(decision_.candidates[ask.candidate], FrameType::dispatch, cluster::encode(spec_));
        if (!remote.ok()) continue;
        remote_ = std::move(*remote);
        remote_->on_progress([this] { note_progress(); });
        record_.node = remote_->node();
        core_.note_dispatched(decision_, record_.node);
        state_recorded_ = false;
        node_joins_ = core_.outcomes.joins(remote_->node());
        dispatched_us_ = core_.clock.monotonic_us();
        if (spec_.transaction == TransactionAction::in_session && !session_->pinned_node) {
            session_->pinned_node = remote_->node();
            pins_ = true;
        }
        return Status();
    }
    if (session_->pinned_node && !is_autocommit()) {
        return lost_transaction();
    }
    return Status(Code::unavailable, "no node is connected")
        .with_name("no_nodes")
        .with_hint("see `roost nodes`; run the statement again when a node is back");
}

// A read that has shown nothing, or the beginning of a transaction, which is nowhere but at that node.
bool RunStream::outlives_its_node() const {
    return ((is_autocommit() && !spec_.writes) || pins_) && cancel_reason_.ok() && rows_given_ == 0 && !header_given_ &&
           retries_ == 0 && !settled_ && !core_.draining;
}

// Its node is lost or stops, and nothing of it has happened there.
Status RunStream::run_elsewhere() {
    if (pins_) session_->pinned_node.reset();
    pins_ = false;
    retries_++;
    core_.metrics.retried();
    core_.log.info("statement_retried", {{"statement_id", spec_.id}, {"lost_node", record_.node}});
    header_.reset();
    return dispatch(record_.node);
}

// The node has refused it: it would have to wait for memory, for longer than that is worth, or it stops.
Status RunStream::pass_on() {
    if (pins_) session_->pinned_node.reset();
    pins_ = false;
    if (!is_autocommit() && session_->pinned_node) return lost_transaction();  // it knows no such transaction
    if (++ask_ >= asks_.size()) return all_stopping();
    return send_to_next();
}

net::Task<Result<net::Frame>> RunStream::next_frame() {
    for (;;) {
        auto frame = co_await remote_->next();
        if (timings_.first_frame_us == 0) timings_.first_frame_us = core_.clock.monotonic_us() - dispatched_us_;
        if (!frame.ok()) {
            const bool retry = frame.status().code() == Code::unavailable && outlives_its_node();
            if (!retry) {
                Status lost = co_await explain_loss(frame.status());
                committed_unheard_ = lost.ok();
                settle(lost);
                if (committed_unheard_) co_return Status(Code::unavailable, "the statement has ended");
                co_return lost;
            }
            if (Status status = run_elsewhere(); !status.ok()) {
                settle(status);
                co_return status;
            }
            continue;
        }
        if (frame->type == FrameType::refused) {
            // The cancel went to a node that had refused already: no other one must begin.
            if (!cancel_reason_.ok()) {
                settle(cancel_reason_);
                co_return cancel_reason_;
            }
            refusals_++;
            if (Status status = pass_on(); !status.ok()) {
                settle(status);
                co_return status;
            }
            continue;
        }
        if (may_try_again(*frame)) {
            auto completion = cluster::decode_completion(frame->payload);
            if (completion.ok() && completion->status.name() == kNodeStopping && retries_ == 0 && !header_given_) {
                if (Status status = run_elsewhere(); !status.ok()) {
                    settle(status);
                    co_return status;
                }
                continue;
            }
            if (completion.ok() && completion->status.code() == Code::conflict) {
                if (Status status = co_await try_again(completion->status); !status.ok()) {
                    settle(status);
                    co_return status;
                }
                continue;
            }
            if (completion.ok() && outgrew_in_commit(*completion) && co_await wrote_nothing()) {
                if (Status status = run_as_large(); !status.ok()) {
                    settle(status);
                    co_return status;
                }
                continue;
            }
        }
        co_return std::move(*frame);
    }
}

// Its COMMIT found no memory in the small lane: the node can't run it again in a slot, as it does with what fails
// before that, for the catalog may have taken the commit all the same.
bool RunStream::outgrew_in_commit(const Completion &completion) const {
    return completion.commit_in_doubt && !completion.ran_large && !spec_.shape_is_large &&
           completion.status.sqlstate() == "53200";
}

net::Task<bool> RunStream::wrote_nothing() {
    const UnsettledCommit commit{spec_.id, written_catalog(spec_), record_.node, node_joins_};
    // One look: when the catalog can't be asked, who explains the commit waits for it.
    const CommitOutcome outcome = co_await core_.outcomes.learn(core_, commit, 0, true, true);
    const bool written = outcome.kind != CommitOutcome::Kind::not_committed;
    co_return !written && cancel_reason_.ok();
}

Status RunStream::run_as_large() {
    core_.log.info("small_lane_too_small", {{"statement_id", spec_.id}, {"node_id", record_.node}, {"at", "commit"}});
    core_.shapes.remember(shape_, true);
    spec_.shape_is_large = true;
    ran_again_ = true;
    remote_.reset();
    return dispatch(std::nullopt);
}

// A statement of its own that lost a race for the catalog has changed nothing, and a read that met a reorganised
// catalog has shown nothing: it is run again, unseen.
bool RunStream::may_try_again(const net::Frame &frame) const {
    return frame.type == FrameType::end && is_autocommit() && rows_given_ == 0 && cancel_reason_.ok() &&
           conflicts_ < core_.limits.conflict_retries_max && !core_.draining &&
           (spec_.timeout_ms == 0 || age_us() < spec_.timeout_ms * 1000);
}

// Takes its turn; where there is none to take, waits a moment, each time longer and each statement its own time, so
// that those who met don't meet again.
net::Task<Status> RunStream::try_again(Status conflict) {
    const int64_t step_ms = kConflictWaitMs << conflicts_;
    conflicts_++;
    ran_again_ = true;
    core_.metrics.conflict_retried();
    core_.log.info("statement_conflict_retried",
                   {{"statement_id", spec_.id}, {"node_id", record_.node}, {"error", conflict.message()}});
    remote_.reset();
    if (leases_.empty() && is_on_postgres(written_catalog(spec_))) {
        const WriteTurns own = turns();
        Status status = co_await hold({own.names.begin(), own.names.end()}, leases_);
        if (!status.ok()) co_return status;
        if (!leases_.empty()) co_return dispatch(std::nullopt);
    }
    const uint64_t spread = std::hash<Uuid>()(spec_.id) >> (8 * conflicts_) & 0xFF;
    const int64_t wait_ms = step_ms / 2 + step_ms * static_cast<int64_t>(spread) / 256;
    const int64_t until_us = core_.clock.monotonic_us() + wait_ms * 1000;
    for (int64_t left_us = wait_ms * 1000; left_us > 0 && cancel_reason_.ok();
         left_us = until_us - core_.clock.monotonic_us()) {
        co_await changed_.wait_for(std::chrono::milliseconds(left_us / 1000 + 1));
    }
    if (!cancel_reason_.ok()) co_return cancel_reason_;
    co_return dispatch(std::nullopt);
}

bool RunStream::may_have_committed() const {
    return (is_autocommit() && spec_.writes) || (spec_.transaction == TransactionAction::commit && session_->wrote);
}

// What a lost node means for this statement: nothing happened, it did happen, or nobody can know yet.
net::Task<Status> RunStream::explain_loss(Status lost) {
    if (!may_have_committed()) {
        if (!cancel_reason_.ok()) co_return cancel_reason_;
        if (spec_.transaction == TransactionAction::in_session) {
            co_return lost_transaction();
        }
        // The end of a transaction that wrote nothing: all of it was answered, and there is nothing to keep.
        if (!is_autocommit()) co_return Status();
        co_return lost;
    }
    Status not_written = cancel_reason_;
    if (not_written.ok()) {
        not_written = Status(Code::unavailable, "the node was lost before it committed; nothing was written")
                          .with_hint("run the statement again")
                          .with_retryable(true);
    }
    co_return co_await explain_commit(std::move(not_written), false);
}

// Asks the catalog whether the commit is there. `over`: it can't come any more. Ok: it is there and nothing is missing;
// `failure`: it is not.
net::Task<Status> RunStream::explain_commit(Status failure, bool over) {
    const UnsettledCommit commit{spec_.id, written_catalog(spec_), record_.node, node_joins_};
    const int64_t wait_ms = gave_up_ ? 0 : core_.limits.outcome_wait_max_ms;
    const CommitOutcome outcome = co_await core_.outcomes.learn(core_, commit, wait_ms, over, true);
    if (outcome.kind == CommitOutcome::Kind::not_committed) co_return failure;
    if (outcome.kind == CommitOutcome::Kind::unknown) {
        core_.metrics.commit_unknown();
        core_.remember_unsettled(commit);
        const std::string why = outcome.why.ok() ? "its node has not come back" : outcome.why.message();
        co_return Status(Code::unavailable, "whether the statement was committed is not known yet: " + why)
            .with_name("commit_unknown")
            .with_sqlstate("08007")
            .with_hint("look the statement up in the history (" + spec_.id.to_string() +
                       ") before it is run again: its state is put right there as soon as it is known")
            .with_retryable(false);
    }
    took_effect_ = true;
    // Only the count of changed rows went with the node: Postgres wire has no way to say so, the others have.
    const bool count_matters = is_autocommit() && has_row_count(statement_.kind) &&
                               spec_.format == ResultFormat::pg_rows && !completion_.affected;
    if (!count_matters) co_return Status();
    co_return Status(Code::unavailable, "the statement took effect (snapshot " + std::to_string(outcome.snapshot) +
                                            "), but its node was lost before it could say how many rows it changed")
        .with_name("committed_unconfirmed")
        .with_sqlstate("08007")
        .with_hint("do not run it again")
        .with_retryable(false);
}

Status RunStream::take_header(const net::Frame &frame) {
    ROOST_ASSIGN_OR_RETURN(ResultHeader header, cluster::decode_header(frame.payload));
    header_ = std::move(header);
    record_.has_result = header_->has_grid;
    note_running();
    if (progress_callback_) progress_callback_();
    return Status();
}

net::Task<Status> RunStream::take_end(const net::Frame &frame) {
    auto completion = cluster::decode_completion(frame.payload);
    if (!completion.ok()) co_return completion.status();
    completion_ = std::move(*completion);
    core_.note_health(record_.node, completion_.status);
    if (!completion_.commit_in_doubt) co_return completion_.status;
    // The node is done with it: what the catalog says now holds.
    co_return co_await explain_commit(completion_.status, true);
}

net::Task<Result<ResultHeader>> RunStream::header() {
    if (!begun_) {
        if (Status status = co_await begin(); !status.ok()) co_return status;
    }
    while (!header_) {
        if (settled_)
            co_return completion_.status.ok() ? Status(Code::internal, "the statement has ended") : completion_.status;
        auto frame = co_await next_frame();
        if (committed_unheard_) {
            header_ = ResultHeader();
            break;
        }
        if (!frame.ok()) co_return frame.status();
        Status status;
        if (frame->type == FrameType::header) {
            status = take_header(*frame);
        } else if (frame->type == FrameType::end) {
            status = co_await take_end(*frame);
            if (status.ok()) header_ = ResultHeader();
            settle(status);
        } else {
            status = Status(Code::data_loss, "the node sent rows before their header");
            settle(status);
        }
        if (!status.ok()) co_return status;
    }
    header_given_ = header_->has_grid;
    co_return *header_;
}

net::Task<Result<std::optional<RowsFrame>>> RunStream::next() {
    if (!header_) {
        auto header = co_await this->header();
        if (!header.ok()) co_return header.status();
    }
    if (settled_) {
        if (!completion_.status.ok()) co_return completion_.status;
        co_return std::optional<RowsFrame>();
    }
    auto frame = co_await next_frame();
    if (committed_unheard_) co_return std::optional<RowsFrame>();
    // Run again: its header comes again, and must say the same.
    while (frame.ok() && frame->type == FrameType::header && ran_again_) {
        const auto again = cluster::decode_header(frame->payload);
        const auto same = [](const Column &a, const Column &b) { return a.name == b.name && a.type == b.type; };
        if (!again.ok() || !std::ranges::equal(again->columns, header_->columns, same)) {
            Status changed(Code::conflict,
                           "could not serialize access: the statement's columns were changed meanwhile");
            settle(changed);
            co_return changed;
        }
        frame = co_await next_frame();
        if (committed_unheard_) co_return std::optional<RowsFrame>();
    }
    if (!frame.ok()) co_return frame.status();
    if (frame->type == FrameType::rows) {
        rows_given_ += frame->rows;
        core_.metrics.bytes_sent(session_->front, frame->payload.size());
        core_.metrics.rows_sent(session_->front, frame->rows);
        co_return std::optional<RowsFrame>(RowsFrame{frame->rows, std::move(frame->payload)});
    }
    Status status;
    if (frame->type == FrameType::end) {
        status = co_await take_end(*frame);
        if (status.ok() && spec_.format == ResultFormat::pg_rows && header_->has_grid &&
            completion_.rows != rows_given_) {
            status = Status(Code::data_loss, "the node says " + std::to_string(completion_.rows) + " rows, " +
                                                 std::to_string(rows_given_) + " arrived");
        }
    } else {
        status = Status(Code::data_loss, "unexpected frame in a result");
    }
    settle(status);
    if (!status.ok()) co_return status;
    co_return std::optional<RowsFrame>();
}

void RunStream::cancel(Status reason) {
    if (settled_ || !cancel_reason_.ok()) return;
    cancel_reason_ = std::move(reason);
    changed_.notify();
    if (!remote_) return;
    remote_->cancel(cancel_reason_);
    // A commit under way is not given up as long as there is hope to hear how it ended.
    watch_cancel(may_have_committed() ? kCommitPatience * core_.limits.cancel_max_ms : core_.limits.cancel_max_ms);
}

// Gives the node so long to end what was cancelled.
void RunStream::watch_cancel(int64_t wait_ms) {
    cancel_guard_ = std::make_unique<net::asio::steady_timer>(core_.loop, std::chrono::milliseconds(wait_ms));
    cancel_guard_->async_wait([this, alive = std::weak_ptr<bool>(alive_)](const boost::system::error_code &ec) {
        if (ec || alive.expired() || settled_ || !remote_) return;
        core_.log.error("cancel_ignored", {{"statement_id", spec_.id}, {"node_id", remote_->node()}});
        gave_up_ = true;
        remote_->fail(cancel_reason_);
    });
}

void RunStream::settle(Status status) {
    if (settled_) return;
    settled_ = true;
    if (cancel_guard_) cancel_guard_->cancel();
    completion_.status = status;
    timings_.total_us = core_.clock.monotonic_us() - since_us_;
    settle_placement(status.ok() || took_effect_);
    settle_session(status);
    settle_record(status);
    core_.running.erase(this);
    core_.metrics.statements_in_flight(static_cast<double>(core_.running.size()));
    if (core_.draining) core_.ended.notify();
}

// What a transaction writes is up to date at its node once it has committed.
void RunStream::settle_placement(bool ok) {
    if (ok && spec_.transaction == TransactionAction::in_session && spec_.writes) {
        for (const placement::Claim::Part &part : decision_.claim.parts) {
            if (part.written && session_->written_units.size() < kWrittenUnitsMax) {
                session_->written_units.push_back(part.unit);
            }
        }
    }
    placement::Directory *directory = core_.policy->directory();
    const auto member = core_.hub.members().find(record_.node);
    if (spec_.transaction == TransactionAction::commit && ok && directory && completion_.committed_snapshot > 0 &&
        member != core_.hub.members().end()) {
        directory->committed(record_.node, member->second.hello.incarnation, session_->written_units,
                             completion_.committed_snapshot);
    }
    if (core_.trace && ok) {
        const NodeTimings &t = completion_.timings;
        const uint64_t fetched = completion_.read_bytes().store_bytes;
        const double cold_us = directory && fetched > 0 ? directory->read_cost().us(fetched) : 0;
        core_.trace->record(since_us_, t.plan_us + t.execute_us - t.blocked_us - static_cast<int64_t>(cold_us),
                            decision_.claim.parts);
    }
    core_.note_ended(decision_, record_.node, completion_, ok);
    if (ok && (spec_.transaction == TransactionAction::commit ? session_->wrote : spec_.writes && is_autocommit())) {
        core_.look_again(written_catalog(spec_));
    }
}

void RunStream::settle_session(const Status &status) {
    if (!is_autocommit() && status.code() == Code::conflict) session_->lost_turns = session_->changes;
    session_->active--;
    session_->last_active_us = core_.clock.monotonic_us();
    const std::string &catalog = written_catalog(spec_);
    const bool unknown = !status.ok() && status.sqlstate() == "08007";
    if (is_autocommit()) {
        // Also when it failed at the commit: others must not build on what they read before.
        if (spec_.writes && (status.ok() || unknown)) core_.leases->count_commit(catalog);
        leases_.clear();
    } else if (spec_.transaction == TransactionAction::in_session) {
        if (!status.ok() && !closed_early_) {
            session_->transaction = TransactionState::failed;
            session_->transaction_failure = Status();  // the client hears this one
        }
    }
    if (status.ok() && remote_) core_.shapes.remember(shape_, completion_.ran_large);
    const bool keeps = remote_ && spec_.session_lasts && (completion_.ran_large || !status.ok());
    if (keeps) session_->kept_on.insert(remote_->node());
    // Dropped before its end: the node hears of it, and its load is given back when it has stopped.
    remote_.reset();
    if (keeps && session_->closed) core_.hub.end_session(record_.node, session_->id);
}

void RunStream::settle_record(const Status &status) {
    record_.finished_us = core_.clock.wall_us();
    if (completion_.timings.execute_us > 0) {
        // As the node saw it: what is heard of it here may be its end.
        const NodeTimings &t = completion_.timings;
        const int64_t began_us = dispatched_us_ + t.queued_us + t.plan_us + t.admission_us;
        const int64_t since_us = std::max<int64_t>(core_.clock.monotonic_us() - began_us, 0);
        const int64_t running_us = record_.finished_us - since_us;
        if (record_.running_us == 0 || record_.running_us > running_us) record_.running_us = running_us;
    } else if (record_.running_us == 0 && status.ok()) {
        record_.running_us = record_.finished_us;
    }
    // What the client could not be told, the history can: it is done, and only its count is missing.
    record_.status = status.ok() || took_effect_        ? meta::StatementStatus::done
                     : status.code() == Code::cancelled ? meta::StatementStatus::cancelled
                                                        : meta::StatementStatus::failed;
    if (record_.status != meta::StatementStatus::done) {
        record_.error = error_text(status);
        record_.error_code = status.name();
        record_.sqlstate = status.sqlstate();
    } else {
        record_.has_result = header_ && header_->has_grid;
        if (record_.has_result) {
            record_.row_count = completion_.rows;
            if (spec_.format == ResultFormat::stored) record_.column_schema = column_schema_json(header_->columns);
        } else {
            record_.row_count = completion_.affected;
        }
        record_.result_bytes = completion_.result_bytes;
    }
    ProfileFacts facts{spec_.id,     record_.kind,
                       timings_,     record_.node.is_nil() ? "" : record_.node.to_string(),
                       "",           &decision_,
                       retries_,     conflicts_,
                       refusals_,    spec_.shape_is_large,
                       &completion_, [this](const std::string &folder) { return core_.table_in(folder); }};
    record_.profile = profile_json(facts);
    if (options_.in_history) core_.meta.record_statement(record_, std::move(options_.end_durable));
    core_.metrics.statement_done(session_->front, record_.kind, metric_status(status));
    // A node refused what the guard let through: most likely what a view or a macro brought.
    if (status.code() == Code::not_allowed && !status.error().rule.empty()) {
        core_.metrics.guard_refused(rule_label(status.error().rule));
        core_.audit.refused(*session_, record_.sql, status, spec_.id);
    }
    const NodeTimings &t = completion_.timings;
    core_.metrics.stage("total", seconds(timings_.total_us));
    core_.metrics.stage("parse", seconds(timings_.parse_us));
    core_.metrics.stage("route", seconds(timings_.route_us));
    core_.metrics.stage("queue", seconds(t.queued_us));
    core_.metrics.stage("plan", seconds(t.plan_us));
    core_.metrics.stage("admission", seconds(t.admission_us));
    core_.metrics.stage("execute", seconds(t.execute_us));
    if (t.commit_us > 0) core_.metrics.stage("commit", seconds(t.commit_us));
    const ReadBytes read = completion_.read_bytes();
    core_.log.info("statement", {{"statement_id", spec_.id},
                                 {"node_id", record_.node},
                                 {"front", session_->front},
                                 {"user", session_->principal.user_name},
                                 {"kind", record_.kind},
                                 {"status", meta::status_name(record_.status)},
                                 {"error_code", record_.error_code},
                                 {"reason", decision_.reason},
                                 {"rows", completion_.rows},
                                 {"retries", retries_},
                                 {"conflicts", conflicts_},
                                 {"store_bytes", read.store_bytes},
                                 {"peer_bytes", read.peer_bytes},
                                 {"cache_bytes", read.cache_bytes},
                                 {"total_us", timings_.total_us}});
}

}  // namespace roost::service
