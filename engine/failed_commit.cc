#include "engine/failed_commit.h"

#include <chrono>
#include <thread>

#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/client_context_state.hpp"
#include "duckdb/main/connection_manager.hpp"
#include "duckdb/transaction/meta_transaction.hpp"
#include "duckdb/transaction/transaction.hpp"
#include "duckdb/transaction/transaction_manager.hpp"

namespace roost {

namespace {

constexpr const char *kMark = "roost";
// A connection of another statement that has just ended its transaction is gone after this.
constexpr std::chrono::milliseconds kSettle{10};

struct Mark : duckdb::ClientContextState {};

}  // namespace

void mark_as_ours(duckdb::ClientContext &context) { context.registered_state->GetOrCreate<Mark>(kMark); }

bool is_ours(duckdb::ClientContext &context) { return context.registered_state->Get<Mark>(kMark) != nullptr; }

FailedCommit::FailedCommit(duckdb::ClientContext &context, const std::string &catalog) {
    auto &meta = duckdb::MetaTransaction::Get(context);
    for (const auto &database : meta.OpenedTransactions()) {
        if (database.get().GetName() == catalog) lake_ = meta.TryGetTransaction(database.get()).get();
    }
    if (!lake_) return;
    for (const auto &other : duckdb::ConnectionManager::Get(context).GetConnectionList()) {
        if (!is_ours(*other) && other->transaction.HasActiveTransaction()) writers_.emplace_back(other);
    }
}

bool FailedCommit::roll_back() {
    try {
        lake_->manager.RollbackTransaction(*lake_);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

bool FailedCommit::let_go() noexcept {
    if (!lake_ || roll_back()) return true;
    try {
        std::this_thread::sleep_for(kSettle);
        // With an empty transaction on its connection DuckLake's rollback goes through. Which of the idle ones is that
        // connection nobody tells; the others, left by earlier failures, get their idleness back.
        std::vector<duckdb::shared_ptr<duckdb::ClientContext>> idle;
        for (const auto &writer : writers_) {
            auto context = writer.lock();
            if (context && !context->transaction.HasActiveTransaction()) idle.push_back(std::move(context));
        }
        for (const auto &context : idle) context->transaction.SetAutoCommit(false);  // begins one
        const bool gone = roll_back();
        for (const auto &context : idle) {
            if (context->transaction.HasActiveTransaction()) context->transaction.Rollback(nullptr);
            context->transaction.SetAutoCommit(true);
        }
        return gone;
    } catch (const std::exception &) {
        return false;
    }
}

}  // namespace roost
