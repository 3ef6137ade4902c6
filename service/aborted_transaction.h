// What a statement hears in a transaction that has failed: why roost itself ended it, once; after that as in Postgres.
#pragma once

#include <utility>

#include "service/session.h"

namespace roost::service {

inline Status aborted_transaction(Session &session) {
    if (!session.transaction_failure.ok()) return std::exchange(session.transaction_failure, Status());
    return Status(Code::failed_precondition,
                  "current transaction is aborted, commands ignored until end of transaction block")
        .with_sqlstate("25P02");
}

}  // namespace roost::service
