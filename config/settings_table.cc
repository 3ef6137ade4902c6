// The one table of settings. A new setting is a member of Settings and a row here; flags, variables, the file,
// `roost config` and --help follow from it.
#include <utility>

#include "config/settings.h"

namespace roost::config {
namespace {

constexpr uint8_t kUp = static_cast<uint8_t>(Command::up);
constexpr uint8_t kGateway = static_cast<uint8_t>(Command::gateway);
constexpr uint8_t kNode = static_cast<uint8_t>(Command::node);
constexpr uint8_t kFront = kUp | kGateway;
constexpr uint8_t kAll = kUp | kGateway | kNode;

constexpr int64_t kSecond = 1'000;
constexpr int64_t kDay = 86'400 * kSecond;
constexpr uint64_t kMiB = 1U << 20;
constexpr uint64_t kTiB = uint64_t{1} << 40;

// How a setting goes into its member and comes out again.
struct Access {
    std::string form;
    std::function<Status(Settings &, std::string_view)> set;
    std::function<std::string(const Settings &)> get;
};

// `member` takes what `parse` makes of the text; `format` brings back the text.
template <class Member, class Parse, class Format>
Access access(std::string form, Member Settings::*member, Parse parse, Format format) {
    return {std::move(form),
            [member, parse](Settings &settings, std::string_view text) -> Status {
                auto value = parse(text);
                if (!value.ok()) return value.status();
                settings.*member = static_cast<Member>(std::move(value).value());
                return {};
            },
            [member, format](const Settings &settings) { return format(settings.*member); }};
}

std::string same(const std::string &value) { return value; }
std::string written(const auto &value) { return value.to_string(); }

Access text(std::string form, std::string Settings::*member) {
    const auto parse = [](std::string_view value) -> Result<std::string> {
        if (value.find_first_of(std::string_view("\0\n\r", 3)) != std::string_view::npos) {
            return Status(Code::invalid_argument, "must be one line of text");
        }
        return std::string(value);
    };
    return access(std::move(form), member, parse, same);
}

Access choice(std::vector<std::string_view> choices, std::string Settings::*member) {
    std::string form;
    for (const auto name : choices) form += (form.empty() ? "" : "|") + std::string(name);
    return access(
        std::move(form), member, [choices](std::string_view value) { return parse_choice(value, choices); }, same);
}

Access count(uint32_t Settings::*member, int64_t min, int64_t max) {
    return access(
        "N", member, [min, max](std::string_view value) { return parse_integer(value, min, max); },
        [](uint32_t value) { return std::to_string(value); });
}

Access count_or_auto(uint32_t Settings::*member, int64_t max) {
    return access(
        "N|auto", member,
        [max](std::string_view value) { return value == "auto" ? Result<int64_t>(0) : parse_integer(value, 1, max); },
        [](uint32_t value) { return value == 0 ? "auto" : std::to_string(value); });
}

Result<uint64_t> bytes_between(std::string_view value, uint64_t min, uint64_t max) {
    auto bytes = parse_bytes(value);
    if (!bytes.ok() || (*bytes >= min && *bytes <= max)) return bytes;
    return Status(Code::invalid_argument, "'" + std::string(value.substr(0, 40)) + "' is out of range; it goes from " +
                                              format_bytes(min) + " to " + format_bytes(max));
}

Access bytes(uint64_t Settings::*member, uint64_t min, uint64_t max) {
    return access(
        "BYTES", member, [min, max](std::string_view value) { return bytes_between(value, min, max); }, format_bytes);
}

Access bytes_or_auto(uint64_t Settings::*member, uint64_t min) {
    return access(
        "BYTES|auto", member,
        [min](std::string_view value) {
            return value == "auto" ? Result<uint64_t>(0) : bytes_between(value, min, kTiB * 64);
        },
        [](uint64_t value) { return value == 0 ? "auto" : format_bytes(value); });
}

Access cache_bytes(uint64_t Settings::*member) {
    return access(
        "BYTES|auto", member,
        [](std::string_view value) {
            return value == "auto" ? Result<uint64_t>(kCacheAuto) : bytes_between(value, 0, kTiB * 64);
        },
        [](uint64_t value) { return value == kCacheAuto ? "auto" : format_bytes(value); });
}

Access duration(int64_t Settings::*member, int64_t min, int64_t max) {
    const auto parse = [min, max](std::string_view value) -> Result<int64_t> {
        auto duration_ms = parse_duration_ms(value);
        if (!duration_ms.ok() || (*duration_ms >= min && *duration_ms <= max)) return duration_ms;
        return Status(Code::invalid_argument, "'" + std::string(value.substr(0, 40)) +
                                                  "' is out of range; it goes from " + format_duration(min) + " to " +
                                                  format_duration(max));
    };
    return access("DURATION", member, parse, format_duration);
}

Access address(Address Settings::*member, UnixSocket unix_socket) {
    return access(
        unix_socket == UnixSocket::allowed ? "HOST:PORT|unix:PATH" : "HOST:PORT", member,
        [unix_socket](std::string_view value) { return parse_address(value, unix_socket); }, written<Address>);
}

Access number(double Settings::*member, double min, double max) {
    const auto parse = [min, max](std::string_view value) -> Result<double> {
        ROOST_ASSIGN_OR_RETURN(const double number, parse_number(value));
        if (number >= min && number <= max) return number;
        return Status(Code::invalid_argument, "'" + std::string(value.substr(0, 40)) +
                                                  "' is out of range; it goes from " + format_number(min) + " to " +
                                                  format_number(max));
    };
    return access("NUMBER", member, parse, format_number);
}

Access join_url() {
    const auto parse = [](std::string_view value) -> Result<std::optional<Address>> {
        if (value.empty()) return std::optional<Address>();
        ROOST_ASSIGN_OR_RETURN(Address gateway, parse_join_url(value));
        return std::optional<Address>(std::move(gateway));
    };
    const auto format = [](const std::optional<Address> &gateway) {
        if (!gateway) return std::string();
        return gateway->is_unix() ? gateway->to_string() : "http://" + gateway->to_string();
    };
    return access("URL", &Settings::join, parse, format);
}

Access pool_name(std::string Settings::*member) {
    const auto parse = [](std::string_view value) -> Result<std::string> {
        constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
        if (value.empty() || value.size() > 63 || value.find_first_not_of(allowed) != std::string_view::npos) {
            return Status(Code::invalid_argument, "a pool's name is 1 to 63 of a-z, 0-9, '_' and '-'");
        }
        return std::string(value);
    };
    return access("NAME", member, parse, same);
}

Access http_url(std::string Settings::*member) {
    const auto parse = [](std::string_view value) -> Result<std::string> {
        if (value.empty()) return std::string();
        const bool is_url = value.substr(0, 7) == "http://" || value.substr(0, 8) == "https://";
        if (!is_url || value.find_first_of(std::string_view(" \t\r\n\0\"'", 7)) != std::string_view::npos) {
            return Status(Code::invalid_argument, "an endpoint starts with http:// or https:// and has no blanks");
        }
        return std::string(value);
    };
    return access("URL", member, parse, same);
}

Setting row(std::string name, uint8_t commands, Access access, std::string standard, std::string meaning) {
    Setting setting;
    setting.name = std::move(name);
    setting.commands = commands;
    setting.form = std::move(access.form);
    setting.set = std::move(access.set);
    setting.get = std::move(access.get);
    setting.standard = std::move(standard);
    setting.meaning = std::move(meaning);
    return setting;
}

Setting also(Setting setting, std::vector<std::string> variables) {
    setting.other_variables = std::move(variables);
    return setting;
}

Setting secret(Setting setting) {
    setting.secret = true;
    return setting;
}

Setting not_in_file(Setting setting) {
    setting.file = false;
    return setting;
}

void add_places(std::vector<Setting> &table) {
    using S = Settings;
    table.push_back(row("dir", kAll, text("PATH", &S::dir), ".roost",
                        "Directory of this process's state: credentials, databases, node identities, caches, logs"));
    table.push_back(
        not_in_file(row("config", kAll, text("FILE", &S::config), "",
                        "File of settings; without it roost.toml of the working directory, if there is one")));
    table.push_back(row("store", kAll, access("PATH|s3://…", &S::store, parse_store, written<StoreLocation>),
                        "{dir}/lake", "Where the lake's data files are: a directory, or s3://bucket/prefix"));
    table.push_back(
        row("external", kAll, access("PATH|s3://…,…", &S::external, parse_stores, format_stores), "",
            "Folders of Parquet that tables may read where it lies (roost import --in-place), commas between; "
            "nothing is ever written or removed there"));
    table.push_back(row("catalog", kAll,
                        access("sqlite:PATH|postgres:DSN", &S::catalog, parse_database, written<DatabaseLocation>),
                        "sqlite:{dir}/catalog/lake.sqlite", "Database of the lake's catalog"));
    table.push_back(
        row("catalogs", kAll, text("FILE", &S::catalogs), "{dir}/catalogs.toml",
            "File of more catalogs, a section [NAME] each with catalog, store and workspace; none is fine"));
    table.push_back(row("meta", kFront,
                        access("sqlite:PATH|postgres:DSN", &S::meta, parse_database, written<DatabaseLocation>),
                        "sqlite:{dir}/meta.sqlite", "Database of users, tokens, workspaces, members and history"));
    table.push_back(row("sample", kFront, access("tpch:SF|none", &S::sample, parse_sample, written<Sample>), "tpch:0.1",
                        "What fills the lake when it is empty"));
    table.push_back(row("ready_file", kFront, text("FILE", &S::ready_file), "",
                        "File (JSON, mode 0600) written once the pool answers queries"));
    table.push_back(
        row("log_file", kAll, text("FILE|-", &S::log_file), "-", "Where log lines go; - is standard error"));
    table.push_back(row("log_level", kAll, choice({"debug", "info", "warn", "error"}, &S::log_level), "info",
                        "The least important lines that are logged"));
}

void add_object_store(std::vector<Setting> &table) {
    using S = Settings;
    table.push_back(
        also(row("s3_endpoint", kAll, http_url(&S::s3_endpoint), "", "Address of an S3-compatible store; empty: AWS"),
             {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}));
    table.push_back(also(row("s3_region", kAll, text("REGION", &S::s3_region), "us-east-1", "Region of the bucket"),
                         {"AWS_REGION", "AWS_DEFAULT_REGION"}));
    table.push_back(
        row("s3_url_style", kAll, choice({"path", "vhost"}, &S::s3_url_style), "vhost",
            "Whether the bucket stands in the path or in the host name; most stores that are not AWS want path"));
    table.push_back(
        secret(also(row("s3_access_key_id", kAll, text("TEXT", &S::s3_access_key_id), "", "Key of the object store"),
                    {"AWS_ACCESS_KEY_ID"})));
    table.push_back(secret(also(
        row("s3_secret_access_key", kAll, text("TEXT", &S::s3_secret_access_key), "", "Secret that belongs to the key"),
        {"AWS_SECRET_ACCESS_KEY"})));
    table.push_back(
        secret(also(row("s3_session_token", kAll, text("TEXT", &S::s3_session_token), "", "Token of temporary keys"),
                    {"AWS_SESSION_TOKEN"})));
}

void add_object_store_limits(std::vector<Setting> &table) {
    using S = Settings;
    table.push_back(row("s3_timeout_ms", kAll, duration(&S::s3_timeout_ms, kSecond, 600 * kSecond), "20s",
                        "Most that one request to the object store may take, in whole seconds; each is tried twice"));
    table.push_back(row("cache_max_bytes", kAll, cache_bytes(&S::cache_max_bytes), "auto",
                        "Room on each node's disk for what it has read of the object store; auto: two fifths of the "
                        "volume, shared by the nodes of roost up, 256 GiB at most; 0: nothing is kept"));
    table.push_back(row("catalog_timeout_ms", kAll, duration(&S::catalog_timeout_ms, kSecond, 3600 * kSecond), "120s",
                        "Most that a catalog in Postgres may take for one question"));
    table.push_back(row("staging", kAll, text("PATH", &S::staging), "{dir}/staging",
                        "Directory of the gateway for files of roost import when the store is not a directory; nodes "
                        "read it, so they are on its machine"));
}

void add_pool(std::vector<Setting> &table) {
    using S = Settings;
    table.push_back(row("nodes", kUp, count(&S::nodes, 1, 64), "3", "Node processes to run"));
    table.push_back(row("node_memory", kUp, bytes(&S::node_memory_bytes, 256 * kMiB, kTiB * 64), "2GiB",
                        "Memory that each node may use, all of it"));
    table.push_back(row("node_cpus", kUp, count_or_auto(&S::node_cpus, 1024), "auto",
                        "CPUs that each node counts on; auto: the machine's, each node all of them"));
    table.push_back(row("routing", kFront,
                        choice({"auto", "affinity", "segments", "least_loaded", "round_robin"}, &S::routing), "auto",
                        "How a statement's node is chosen; auto is the best that this version has"));
    table.push_back(row("placement_trace", kFront, text("FILE", &S::placement_trace), "",
                        "File for what statements read, without their texts, 1 GiB at most, for roost sim placement "
                        "--trace; empty: none"));
    table.push_back(row("http_sessions", kFront, choice({"on", "off"}, &S::http_sessions), "off",
                        "Sessions over HTTP; off as long as they have no temporary tables and no staged files"));
    table.push_back(row("http", kFront, address(&S::http, UnixSocket::refused), "127.0.0.1:8080",
                        "Address of the HTTP interface; port 0: any free one"));
    table.push_back(row("pg", kFront, address(&S::pg, UnixSocket::refused), "127.0.0.1:5433",
                        "Address of the PostgreSQL interface; port 0: any free one"));
    table.push_back(row("listen", kFront, address(&S::listen, UnixSocket::allowed), "unix:{dir}/gateway.sock",
                        "Where nodes join the gateway"));
    table.push_back(row("token_file", kGateway | kNode, text("FILE", &S::token_file), "{dir}/join-token",
                        "File with the token that nodes join with; the gateway makes it when it is not there"));
    table.push_back(row("join", kNode, join_url(), "", "The gateway to join"));
    table.push_back(row("cpus", kNode, count_or_auto(&S::cpus, 1024), "auto",
                        "CPUs that the node counts on; auto: what the machine and its cgroup give"));
    table.push_back(row("memory", kNode, bytes_or_auto(&S::memory_bytes, 256 * kMiB), "auto",
                        "Memory that the node may use, all of it; auto: what the machine and its cgroup give"));
    table.push_back(row("pool", kNode, pool_name(&S::pool), "default", "The set of nodes that this one belongs to"));
}

void add_limits(std::vector<Setting> &table) {
    using S = Settings;
    table.push_back(row("heartbeat_ms", kAll, duration(&S::heartbeat_ms, 50, 60 * kSecond), "5s",
                        "How often a node reports to the gateway"));
    table.push_back(row("node_drop_ms", kFront, duration(&S::node_drop_ms, 100, 3600 * kSecond), "30s",
                        "Silence after which a node is no longer a member"));
    table.push_back(row("statement_timeout_ms", kFront, duration(&S::statement_timeout_ms, 0, 30 * kDay), "10m",
                        "Longest run of a statement that asks for no other; 0: no limit"));
    table.push_back(row("statement_admission_wait_ms", kAll, duration(&S::admission_wait_ms, 0, kDay), "5m",
                        "Longest wait of a statement for memory; 0: it runs at once, at whatever size is free"));
    table.push_back(row("session_idle_timeout_ms", kFront, duration(&S::session_idle_timeout_ms, kSecond, 30 * kDay),
                        "15m", "An HTTP session that is not used for this long is closed"));
    table.push_back(row("session_life_ms", kFront, duration(&S::session_life_ms, kSecond, 365 * kDay), "4h",
                        "Longest life of an HTTP session"));
    table.push_back(row("idle_transaction_timeout_ms", kFront, duration(&S::idle_transaction_timeout_ms, 0, kDay), "1m",
                        "A write transaction left idle this long is rolled back; 0: never"));
    table.push_back(row("result_retention_ms", kAll, duration(&S::result_retention_ms, kSecond, 365 * kDay), "24h",
                        "How long the result of an HTTP statement can be read"));
    table.push_back(row("history_retention_ms", kFront, duration(&S::history_retention_ms, kSecond, 3650 * kDay), "30d",
                        "How long a statement stays in the history"));
    table.push_back(row("http_hold_max_ms", kFront, duration(&S::http_hold_max_ms, 0, 55 * kSecond), "45s",
                        "Longest time that a request waits for a statement to end; clients give up at 60 s"));
    table.push_back(row("stop_timeout_ms", kAll, duration(&S::stop_timeout_ms, 100, 3600 * kSecond), "10s",
                        "Time that running statements have to end when the process is told to stop"));
    table.push_back(
        row("orphan_grace_ms", kAll, duration(&S::orphan_grace_ms, 0, 365 * kDay), "2d",
            "Age from which a file of the lake that no snapshot names is removed: a killed node left it. No "
            "transaction may be open for more than half of it and commit. 0: nothing is removed"));
    table.push_back(row("sql_text_max_bytes", kFront, bytes(&S::sql_text_max_bytes, 1024, 64 * kMiB), "16MiB",
                        "Longest text of a statement"));
    table.push_back(row("message_max_bytes", kFront, bytes(&S::message_max_bytes, 64 * 1024, 1024 * kMiB), "64MiB",
                        "Longest message or request body of a client"));
    table.push_back(row("inline_result_max_bytes", kAll, bytes(&S::inline_result_max_bytes, 0, kMiB), "64KiB",
                        "Largest result that travels on a node's control link"));
    table.push_back(
        row("page_rows", kFront, count(&S::page_rows, 1, 1000), "200", "Rows of a JSON page that asks for no number"));
    table.push_back(
        row("page_rows_max", kFront, count(&S::page_rows_max, 1, 1000), "1000", "Most rows of a JSON page"));
    table.push_back(row("node_queue_max", kAll, count(&S::node_queue_max, 1, 10'000), "100",
                        "Statements that may stand at one node, running ones not counted"));
    table.push_back(row("gateway_connections_max", kFront, count(&S::gateway_connections_max, 1, 1'000'000), "10000",
                        "Client connections of a gateway"));
    table.push_back(
        row("admission_profile", kAll,
            choice({"auto", "single", "equal_2", "decaying_2", "decaying_3"}, &S::admission_profile), "equal_2",
            "How a node divides its memory among statements that run at once: by their estimates (auto), or "
            "into fixed slots"));
    table.push_back(row("session_max_bucket_fraction", kAll, number(&S::session_max_bucket_fraction, 0.01, 1), "0.3333",
                        "Under auto, the most of a node's budget that is required for one statement"));
    table.push_back(row("grant_feedback_enabled", kAll, choice({"true", "false"}, &S::grant_feedback_enabled), "true",
                        "Under auto, whether a statement is sized by what its last runs used"));
    table.push_back(row("grant_feedback_safety_multiplier", kAll, number(&S::grant_feedback_safety_multiplier, 1, 100),
                        "1.25", "What a statement gets of what its last runs used at most"));
    table.push_back(row("admission_groups", kAll, text("FILE", &S::admission_groups), "{dir}/groups.toml",
                        "File of groups of users that take turns for memory, a section [NAME] each with users, weight, "
                        "priority, running_max and memory_max; none is fine"));
}

}  // namespace

const std::vector<Setting> &all_settings() {
    static const std::vector<Setting> table = [] {
        std::vector<Setting> rows;
        add_places(rows);
        add_object_store(rows);
        add_object_store_limits(rows);
        add_pool(rows);
        add_limits(rows);
        return rows;
    }();
    return table;
}

}  // namespace roost::config
