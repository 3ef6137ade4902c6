// Columns and parameter types of a statement that is not run: any node says them. It reads nothing, so it places
// nothing.
#include "service/gateway_service.h"

namespace roost::service {

namespace asio = net::asio;

namespace {

// Of a describe that met a node without memory; the pauses double, some 2.5 s together.
constexpr int kDescribeRetries = 7;
constexpr int64_t kDescribePauseMs = 10;

}  // namespace

net::Task<Result<ResultHeader>> GatewayService::describe(std::shared_ptr<Session> session,
                                                         const sql::Statement &statement,
                                                         std::vector<uint32_t> param_oids) {
    if (core_->draining) co_return Status(Code::unavailable, "roost is shutting down").with_sqlstate("57P03");
    auto reach = co_await find_reach(session, statement);
    if (!reach.ok()) co_return reach.status();
    StatementSpec spec;
    spec.id = Uuid::make();
    spec.work = Work::describe;
    spec.catalogs = std::move(reach->catalogs);
    spec.write_catalog = std::move(reach->write_catalog);
    spec.rights = std::move(reach->rights);
    spec.sql = statement.text;
    spec.param_oids = std::move(param_oids);
    spec.settings = session->settings;
    spec.session = session->id;
    spec.read_only = session->transaction_read_only;
    spec.timeout_ms = 30'000;
    routing::StatementFeatures features;
    if (session->transaction == TransactionState::open && session->pinned_node) {
        spec.transaction = TransactionAction::in_session;
        spec.catalogs = session->transaction_catalogs;
        features.pinned_node = session->pinned_node;
    }
    Status lost(Code::unavailable, "no node is connected");
    for (int attempt = 0, full = 0; attempt < 2; ++attempt) {
        const routing::Decision decision = core_->policy->explain(core_->snapshot(), features);
        if (decision.candidates.empty()) co_return lost;
        features.avoid = decision.candidates.front();
        auto remote = core_->hub.open(decision.candidates.front(), net::FrameType::dispatch, cluster::encode(spec));
        if (!remote.ok()) {
            lost = remote.status();
            continue;
        }
        Result<ResultHeader> header(Status(Code::data_loss, "the node described nothing"));
        for (;;) {
            auto frame = co_await (*remote)->next();
            if (!frame.ok()) {
                lost = frame.status();
                break;
            }
            if (frame->type == net::FrameType::refused) {
                lost = all_stopping();
                break;
            }
            if (frame->type == net::FrameType::header) header = cluster::decode_header(frame->payload);
            if (frame->type != net::FrameType::end) continue;
            auto completion = cluster::decode_completion(frame->payload);
            if (!completion.ok()) co_return completion.status();
            if (completion->status.ok()) co_return header;
            // What runs in the node's small lane has its memory now; this takes hardly any, and soon.
            const bool out_of_memory = completion->status.sqlstate() == "53200";
            if (!out_of_memory || ++full > kDescribeRetries) co_return completion->status;
            lost = completion->status;
            attempt = -1;
            asio::steady_timer pause(core_->loop, std::chrono::milliseconds(kDescribePauseMs << full));
            co_await pause.async_wait(asio::use_awaitable);
            break;
        }
    }
    co_return lost;
}

}  // namespace roost::service
