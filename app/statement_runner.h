// Runs one statement on a pool as a person at a terminal would have it: waits, shows that it waits, prints the result,
// cancels on Ctrl-C. Not thread-safe. Used by `roost sql` and, for its waiting, `roost import`.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "app/interrupt.h"
#include "app/pool_client.h"
#include "app/result_writer.h"
#include "base/status.h"

namespace roost::app {

class StatementRunner {
public:
    struct Options {
        SubmitOptions submit;
        OutputFormat format = OutputFormat::table;
        bool show_progress = false;  // on stderr
    };
    StatementRunner(PoolClient &client, Interrupt &interrupt, Options options, std::ostream &out);

    // Errors: the server's refusal, the engine's text (engine_error), cancelled.
    Status run(const std::string &sql);

private:
    Status print(const StatementState &statement);
    Status print_rows(const StatementState &statement);
    PoolClient &client_;
    Interrupt &interrupt_;
    Options options_;
    std::ostream &out_;
};

// Polls until it is over; each state on the way is shown to `watch`. On Ctrl-C it is cancelled on the server, which
// then says how it ended: cancelled, or done after all.
Result<StatementState> follow(PoolClient &client, Interrupt &interrupt, StatementState statement,
                              const std::function<void(const StatementState &)> &watch);

// Ok for done; else the engine's text or "cancelled".
Status outcome(const StatementState &statement);

// The line of the text that holds its `position`-th character (from 1), and a caret below: "LINE 2: from t\n ^\n".
// Empty when the position is 0 or beyond the end.
std::string position_marker(std::string_view sql, uint32_t position);

}  // namespace roost::app
