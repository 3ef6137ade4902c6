// The command lines of the subcommands that talk to a running pool, or to none. (up, gateway and node take settings:
// config/.)
// Pure: reads no file and no variable. An unknown flag is an error with a guess of what was meant.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/result_writer.h"
#include "base/status.h"
#include "config/settings.h"
#include "engine/register_files.h"
#include "sim/admission_report.h"
#include "sim/report.h"

namespace roost::app {

// Which pool: see pool_address.h for what is looked at when nothing is given.
struct PoolArguments {
    std::string dir, url, token;
};

struct SqlArguments {
    PoolArguments pool;
    std::vector<std::string> commands;  // -c, in order
    std::string file;                   // -f; "-" is standard input
    std::string workspace = "main", catalog;
    OutputFormat format = OutputFormat::table;
    double timeout_s = 600;
};

struct NodesArguments {
    PoolArguments pool;
    std::string action, node;  // "drain", "resume", "set-profile"; empty: list
    std::string profile;       // of set-profile
    OutputFormat format = OutputFormat::table;
};

struct PlacementArguments {
    PoolArguments pool;
    std::string table;  // empty: all
    std::string workspace = "main";
    OutputFormat format = OutputFormat::table;
};

struct CacheArguments {
    PoolArguments pool;
    std::string action;  // empty: list what is warm; else warm, pin, unpin or evict
    std::string table, node;
    std::string workspace = "main";
    OutputFormat format = OutputFormat::table;
};

struct ExplainRouteArguments {
    PoolArguments pool;
    std::string sql;
    std::string workspace = "main";
    OutputFormat format = OutputFormat::table;
};

struct ImportArguments {
    PoolArguments pool;
    std::vector<std::string> files;
    std::string into;
    std::string workspace = "main";
    std::string catalog;  // empty: the workspace's default
    bool quiet = false;
    std::vector<std::string> sources;       // read by the pool's nodes instead of uploaded
    std::optional<RegisterFiles> in_place;  // the files stay where they are
};

struct ConfigArguments {
    config::Command command = config::Command::up;
    bool json = false;
    std::vector<std::string> flags;  // of that command
};

// The text of --help, when that was asked for.
struct HelpText {
    std::string text;
};

template <class T>
using Parsed = Result<std::variant<T, HelpText>>;

Parsed<SqlArguments> parse_sql_arguments(const std::vector<std::string> &arguments);
Parsed<NodesArguments> parse_nodes_arguments(const std::vector<std::string> &arguments);
Parsed<PlacementArguments> parse_placement_arguments(const std::vector<std::string> &arguments);
Parsed<CacheArguments> parse_cache_arguments(const std::vector<std::string> &arguments);
Parsed<ExplainRouteArguments> parse_explain_route_arguments(const std::vector<std::string> &arguments);
Parsed<ImportArguments> parse_import_arguments(const std::vector<std::string> &arguments);
Parsed<ConfigArguments> parse_config_arguments(const std::vector<std::string> &arguments);
// Without the word "placement".
Parsed<sim::SimCommand> parse_sim_placement_arguments(const std::vector<std::string> &arguments);
Parsed<sim::AdmissionCommand> parse_sim_admission_arguments(const std::vector<std::string> &arguments);

}  // namespace roost::app
