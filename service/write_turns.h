// Who waits for whom on a Postgres catalog. Many write there at once, and the catalog refuses the one that lost a race;
// left at that, those who change one table would undo each other's work, and a long statement would never win. So what
// lost a race takes a turn at what it changes before it runs again, and who comes while somebody has that turn or waits
// for it stands in the line. Short DDL takes turns at its catalog from the start. Pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/statement.h"
#include "lake/lake_state.h"
#include "sql/statement.h"

namespace roost::service {

struct WriteTurns {
    std::vector<std::string> names;  // of leases, in order; none: it loses races to nobody who waits for it
    bool always = false;             // not only after a lost race
};

// `state`: of the catalog that is written, as far as it is known; null: names are taken as they are written.
WriteTurns turns_of(const sql::Statement &statement, const std::string &catalog, const StatementSettings &settings,
                    const LakeState *state);

}  // namespace roost::service
