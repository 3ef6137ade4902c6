// The settings of every process, from one table: name, default, meaning, where it may be given. `Settings` is what they
// came to, each with its source. Loaded once at start by app/ and passed down; a value, not shared state.
//
// A setting `node_memory` is the key of that name in roost.toml, the variable ROOST_NODE_MEMORY and the flag
// --node-memory. Flag beats variable beats file beats default.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "config/values.h"

namespace roost::config {

// Who takes a setting; bits, so that a setting can say several.
enum class Command : uint8_t { up = 1, gateway = 2, node = 4, any = 7 };

struct Source {
    enum class Kind : uint8_t { standard, file, variable, flag } kind = Kind::standard;
    std::string where;  // "default", "roost.toml:12", "ROOST_HTTP", "--http"
};

// A lake beside the first one, as the file of catalogs tells.
struct CatalogEntry {
    std::string name;       // SQL's name of it
    std::string workspace;  // slug
    StoreLocation store;
    DatabaseLocation catalog;
};

// A group of the workload: whose statements take turns for memory together.
struct WorkloadGroup {
    std::string name;  // empty: of all who are in no other
    double weight = 1;
    int32_t priority = 0;
    uint32_t running_max = 0;       // 0: no cap
    uint64_t memory_max_bytes = 0;  // 0: no cap
    std::vector<std::string> users;
};

inline constexpr uint64_t kCacheAuto = UINT64_MAX;

struct Settings {
    // Where things are.
    std::string dir;
    std::string config;
    StoreLocation store;
    std::vector<StoreLocation> external;  // of somebody else's files
    DatabaseLocation catalog;
    std::string catalogs;                     // file of more catalogs
    std::vector<CatalogEntry> more_catalogs;  // what it says; empty when there is no file
    DatabaseLocation meta;
    Sample sample;
    std::string ready_file;
    std::string log_file;   // "-": stderr
    std::string log_level;  // debug | info | warn | error

    // The object store.
    std::string s3_endpoint, s3_region, s3_url_style;
    std::string s3_access_key_id, s3_secret_access_key, s3_session_token;
    int64_t s3_timeout_ms = 0;
    uint64_t cache_max_bytes = 0;  // kCacheAuto: a share of the disk
    int64_t catalog_timeout_ms = 0;
    std::string staging;  // directory of uploaded files, with an object store

    // The pool.
    uint32_t nodes = 0;
    uint64_t node_memory_bytes = 0;
    uint32_t node_cpus = 0;       // 0: the machine's, shared out
    std::string routing;          // auto | affinity | segments | least_loaded | round_robin
    std::string placement_trace;  // a file; empty: none
    std::string http_sessions;    // on | off

    // Ports of the gateway.
    Address http, pg;
    Address listen;          // of nodes that join
    std::string token_file;  // the join token

    // A node of its own.
    std::optional<Address> join;
    uint32_t cpus = 0;          // 0: what the machine gives
    uint64_t memory_bytes = 0;  // 0: what the machine gives
    std::string pool;

    // Limits.
    int64_t heartbeat_ms = 0, node_drop_ms = 0;
    int64_t statement_timeout_ms = 0, admission_wait_ms = 0;
    int64_t session_idle_timeout_ms = 0, session_life_ms = 0, idle_transaction_timeout_ms = 0;
    int64_t result_retention_ms = 0, history_retention_ms = 0;
    int64_t http_hold_max_ms = 0, stop_timeout_ms = 0;
    int64_t orphan_grace_ms = 0;  // 0: never
    uint64_t sql_text_max_bytes = 0, message_max_bytes = 0, inline_result_max_bytes = 0;
    uint32_t page_rows = 0, page_rows_max = 0;
    uint32_t node_queue_max = 0, gateway_connections_max = 0;
    std::string admission_profile;  // auto | single | equal_2 | decaying_2 | decaying_3
    double session_max_bucket_fraction = 0;
    std::string grant_feedback_enabled;  // true | false
    double grant_feedback_safety_multiplier = 0;
    std::string admission_groups;       // file of groups of the workload
    std::vector<WorkloadGroup> groups;  // what it says; empty when there is no file

    // By the setting's name.
    std::map<std::string, Source, std::less<>> sources;
    bool is_default(std::string_view name) const;
};

// One row of the table.
struct Setting {
    std::string name;      // key in roost.toml
    std::string form;      // how a value is written: "HOST:PORT", "BYTES", "path|vhost"
    std::string standard;  // the default; {dir} is the value of `dir`
    std::string meaning;   // one sentence
    uint8_t commands = 0;  // bits of Command
    bool secret = false;   // never printed, and not taken as a flag, which other users of the machine can see
    bool file = true;      // may stand in roost.toml
    std::vector<std::string> other_variables;  // looked at after ROOST_…, e.g. AWS_REGION
    std::function<Status(Settings &, std::string_view)> set;
    std::function<std::string(const Settings &)> get;

    bool takes(Command command) const { return (commands & static_cast<uint8_t>(command)) != 0; }
    std::string flag() const;      // --node-memory; empty for a secret
    std::string variable() const;  // ROOST_NODE_MEMORY
};

// The table, in the order in which it is printed.
const std::vector<Setting> &all_settings();

// The value of an environment variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string &name)>;
Environment process_environment();

// `flags` as on the command line: "--http", "127.0.0.1:0", "--nodes=3"; the last of a repeated flag counts.
// `default_file` is read when neither --config nor ROOST_CONFIG names a file, if it exists; empty: none. Errors name
// the setting, where it was given, and what would do.
Result<Settings> load(Command command, const std::vector<std::string> &flags, const Environment &environment,
                      const std::string &default_file = "roost.toml");

// The variables that give a child process run as `command` the same settings, defaults left out. For posix_spawn's
// environment: unlike flags, other users can't read it.
std::vector<std::pair<std::string, std::string>> variables_of(const Settings &settings, Command command);

// `roost config`: name, value, source and meaning of what `command` takes. Secrets and passwords are masked.
std::string print_text(const Settings &settings, Command command);
std::string print_json(const Settings &settings, Command command);
// For --help of `command`: each flag with its form, default and meaning.
std::string print_flags(Command command);

}  // namespace roost::config
