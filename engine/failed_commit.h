// What a DuckLake commit that fails leaves behind, and letting go of it. DuckDB does not roll back what failed to
// commit, and DuckLake's own rollback fails before it lets go, because the connection with which it writes its metadata
// has no transaction any more. That transaction would then hold the connection, and through it the whole instance, for
// ever. (DuckLake 1.5.5, DuckLakeTransaction::Rollback.)
#pragma once

#include <string>
#include <vector>

#include "duckdb/main/client_context.hpp"

namespace duckdb {
class Transaction;
}

namespace roost {

// Tells the connections that roost made from those that DuckLake makes for itself. Called once for each of ours.
void mark_as_ours(duckdb::ClientContext &context);
bool is_ours(duckdb::ClientContext &context);

// Made before the commit, on the thread that commits.
class FailedCommit {
public:
    // REQUIRES: an open transaction.
    FailedCommit(duckdb::ClientContext &context, const std::string &catalog);
    // After the commit has thrown: the lake's transaction is let go. False: it could not be.
    bool let_go() noexcept;

private:
    using Contexts = std::vector<duckdb::weak_ptr<duckdb::ClientContext>>;
    bool roll_back();

    duckdb::Transaction *lake_ = nullptr;  // null: the transaction has not touched the lake
    Contexts writers_;                     // DuckLake's own connections that had a transaction, of any statement
};

}  // namespace roost
