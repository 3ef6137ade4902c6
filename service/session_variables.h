// The settings of one session: SET, SET LOCAL, RESET, SHOW as PostgreSQL has them, with the transaction's undo. No I/O
// and no engine: what acts is copied to the Session (apply_to), the rest is only shown. One owner (a front's
// connection), loop thread only.
//
// Values: a variable has a default (table, or what the client's startup packet said), a session value (SET) and a local
// value (SET LOCAL, gone at the end of the transaction). rollback() restores the session values that commit() last made
// permanent. Outside a transaction block the front calls commit() or rollback() at the end of each message (or group up
// to Sync).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "service/session.h"
#include "service/variable_table.h"

namespace roost::service {

class SessionVariables {
public:
    struct Identity {
        std::string user;
        std::string server_version = "15.0";  // what ParameterStatus announces
    };
    struct Shown {
        std::string name, setting, description;
    };

    explicit SessionVariables(Identity identity);

    // Names are taken in any case, and in the spellings of SET's own grammar ("time zone", "names", "session
    // authorization", …). Errors of all: 42704 unknown name, 55P02 cannot be changed, 22023 no such value, 0A000 a
    // value PostgreSQL has and roost has not, 42501 a setting of the engine.

    // The value a startup packet gives: RESET goes back to it.
    Status set_default(std::string_view name, std::string_view value);
    // `values`: the list of SET; one element but for search_path and DateStyle.
    Status set(std::string_view name, const std::vector<std::string> &values, bool is_local);
    // SET x TO DEFAULT, RESET x.
    Status reset(std::string_view name, bool is_local = false);
    void reset_all();

    Result<Shown> show(std::string_view name) const;
    std::vector<Shown> show_all() const;  // by name

    // BEGIN with its options; what is not given follows the session's defaults.
    void begin_transaction(const std::optional<std::string> &isolation, std::optional<bool> read_only);
    bool transaction_read_only() const;
    void commit();
    void rollback();

    // Reported variables with their values: all of them, or those whose value is not the one last handed out.
    std::vector<std::pair<std::string_view, std::string>> all_reports();
    std::vector<std::pair<std::string_view, std::string>> take_reports();

    // Copies what acts: search_path, time zone, statement timeout, default_transaction_read_only, application name.
    void apply_to(Session &session) const;
    int64_t duration_ms(std::string_view name) const;
    // Goes up with every change; a caller applies again when it differs from what it last saw.
    uint64_t version() const { return version_; }

private:
    struct Value {
        std::optional<std::string> session, local;
    };

    Result<std::string> resolve(std::string_view name) const;  // canonical key, or 42704/42501
    Result<std::string> normalize(const std::string &key, const std::vector<std::string> &values) const;
    void assign(const std::string &key, std::optional<std::string> value, bool is_local);
    std::string default_of(const std::string &key) const;
    std::string current(const std::string &key) const;
    std::string display_name(const std::string &key) const;

    Identity identity_;
    std::map<std::string, std::string, std::less<>> defaults_;  // from the startup packet, keys in lower case
    std::map<std::string, Value, std::less<>> values_;
    std::map<std::string, std::optional<std::string>, std::less<>>
        undo_;  // session values before this transaction's first SET
    std::map<std::string_view, std::string> reported_;
    uint64_t version_ = 1;
    uint64_t reported_version_ = 0;
};

// "a, "B c"" → {a, B c}: unquoted names folded to lower case. nullopt: not a list of identifiers.
std::optional<std::vector<std::string>> split_identifiers(std::string_view text);
std::string quote_identifier(std::string_view name);

}  // namespace roost::service
