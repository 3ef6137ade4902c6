#include "app/client_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace roost::app {
namespace {

constexpr size_t kMostFlagBytes = 80;

// A CLI11 command with the house's manners: values instead of exceptions, and a guess at what a wrong flag was meant to
// be.
class CommandLine {
public:
    CommandLine(const std::string &name, const std::string &summary) : app_(summary, "roost " + name) {
        app_.set_help_flag("-h,--help", "show this text");
        app_.allow_extras();
    }

    CLI::App &app() { return app_; }

    void add_pool(PoolArguments &pool) {
        app_.add_option("--dir", pool.dir, "directory of the pool (default: ROOST_DIR, else .roost)")->type_name("DIR");
        app_.add_option("--url", pool.url,
                        "http://HOST:PORT of the pool (default: ROOST_URL, else what runs in the directory)")
            ->type_name("URL");
        app_.add_option("--token", pool.token,
                        "token to show; other users of this machine can see it here, so better ROOST_TOKEN "
                        "(default: ROOST_TOKEN, else the directory's)")
            ->type_name("TOKEN");
    }

    void add_format(std::string &format) {
        app_.add_option("--format", format, "table, csv or json (default: table)")->type_name("FORMAT");
    }

    // The help text when that is wanted; nothing when the arguments were taken.
    Result<std::optional<HelpText>> parse(const std::vector<std::string> &arguments) {
        try {
            app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
        } catch (const CLI::CallForHelp &) {
            return std::optional(HelpText{app_.help()});
        } catch (const CLI::ParseError &error) {
            return Status(Code::invalid_argument, error.what())
                .with_hint(app_.get_name() + " --help explains the flags");
        }
        const std::vector<std::string> left = app_.remaining();
        if (left.empty()) return std::optional<HelpText>();
        return unexpected(left.front());
    }

private:
    Status unexpected(const std::string &word) const {
        const std::string shown = word.substr(0, kMostFlagBytes);
        if (!word.starts_with('-')) {
            return Status(Code::invalid_argument, "unexpected argument '" + shown + "'")
                .with_hint(app_.get_name() + " --help explains what it takes");
        }
        std::vector<std::string> names;
        for (const CLI::Option *option : app_.get_options()) {
            for (const std::string &name : option->get_lnames()) names.push_back("--" + name);
        }
        const std::string_view near = config::nearest(word.substr(0, word.find('=')), {names.begin(), names.end()});
        return Status(Code::invalid_argument, "unknown flag " + shown)
            .with_hint(near.empty() ? app_.get_name() + " --help lists them"
                                    : "did you mean " + std::string(near) + "?");
    }

    CLI::App app_;
};

// Of one that was written out, with the flag's name in the message.
Status take_format(const std::string &text, OutputFormat &format) {
    if (text.empty()) return {};
    ROOST_ASSIGN_OR_RETURN(format, parse_output_format(text));
    return {};
}

// The rest of a command that prints a table: --format and the pool's flags, after its own.
template <class Arguments>
Result<std::optional<HelpText>> parse_with_format(CommandLine &line, const std::vector<std::string> &words,
                                                  Arguments &out) {
    std::string format;
    line.add_format(format);
    line.add_pool(out.pool);
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(words));
    if (!help) ROOST_RETURN_IF_ERROR(take_format(format, out.format));
    return help;
}

}  // namespace

Parsed<SqlArguments> parse_sql_arguments(const std::vector<std::string> &arguments) {
    CommandLine line(
        "sql",
        "Runs SQL on a pool, statement by statement, and prints the results. Without -c and -f it reads "
        "statements from standard input, each up to its semicolon. Ctrl-C cancels the statement that runs.");
    SqlArguments out;
    std::string format;
    line.app()
        .add_option("-c,--command", out.commands, "SQL to run; may be given several times")
        ->type_name("SQL")
        ->allow_extra_args(false);
    line.app().add_option("-f,--file", out.file, "file of SQL to run; - is standard input")->type_name("FILE");
    line.add_format(format);
    line.app()
        .add_option("--catalog", out.catalog, "catalog of unqualified names (default: the workspace's)")
        ->type_name("NAME");
    line.app().add_option("--workspace", out.workspace, "workspace (default: main)")->type_name("NAME");
    line.app()
        .add_option("--timeout", out.timeout_s, "seconds that a statement may run (default: 600)")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.001, 2592000.0));
    line.add_pool(out.pool);
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(arguments));
    if (help) return {*help};
    ROOST_RETURN_IF_ERROR(take_format(format, out.format));
    if (!out.commands.empty() && !out.file.empty())
        return Status(Code::invalid_argument, "-c and -f exclude each other");
    return {out};
}

Parsed<NodesArguments> parse_nodes_arguments(const std::vector<std::string> &arguments) {
    CommandLine line("nodes",
                     "Lists the nodes of a pool: their state, load and memory. `drain NODE` keeps new statements away "
                     "from a node (what runs there ends by itself), `resume NODE` lets them in again. "
                     "`set-profile NODE PROFILE` changes how the node divides its memory (auto, single, equal_2, "
                     "decaying_2, decaying_3) until it is started again; what runs keeps what it has.");
    NodesArguments out;
    line.app().add_option("ACTION", out.action, "drain, resume or set-profile");
    line.app().add_option("NODE", out.node, "its name or id");
    line.app().add_option("PROFILE", out.profile, "of set-profile");
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, parse_with_format(line, arguments, out));
    if (help) return {*help};
    const bool sets_profile = out.action == "set-profile";
    if (!out.action.empty() && out.action != "drain" && out.action != "resume" && !sets_profile) {
        return Status(Code::invalid_argument,
                      "nodes can be drained and resumed and have their profile set, and not '" + out.action + "'")
            .with_hint("roost nodes --help explains what it takes");
    }
    if (!out.action.empty() && out.node.empty()) {
        return Status(Code::invalid_argument, "which node shall I " + out.action + "?")
            .with_hint("`roost nodes` lists their names");
    }
    if (!sets_profile && !out.profile.empty()) {
        return Status(Code::invalid_argument, "unexpected argument '" + out.profile + "'")
            .with_hint("roost nodes --help explains what it takes");
    }
    if (sets_profile && out.profile.empty()) {
        return Status(Code::invalid_argument, "which profile shall " + out.node + " have?")
            .with_hint("auto, single, equal_2, decaying_2 or decaying_3");
    }
    return {out};
}

Parsed<PlacementArguments> parse_placement_arguments(const std::vector<std::string> &arguments) {
    CommandLine line("placement", "Says on which nodes tables are warm, and which of them get the next statement.");
    PlacementArguments out;
    line.app().add_option("TABLE", out.table, "TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE (default: all)");
    line.app().add_option("--workspace", out.workspace, "workspace (default: main)")->type_name("NAME");
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, parse_with_format(line, arguments, out));
    if (help) return {*help};
    return {out};
}

Parsed<CacheArguments> parse_cache_arguments(const std::vector<std::string> &arguments) {
    CommandLine line("cache",
                     "Lists what is warm in the nodes' caches, by node and table; or does something about a table: "
                     "warm TABLE, pin TABLE, unpin TABLE, evict TABLE.");
    CacheArguments out;
    line.app()
        .add_option("ACTION", out.action, "warm, pin (warm, and keep), unpin or evict (default: list)")
        ->check(CLI::IsMember({"warm", "pin", "unpin", "evict"}));
    line.app().add_option("TABLE", out.table, "TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE");
    line.app()
        .add_option("--node", out.node,
                    "name or id of the node (default: those where the table is warm, else its owner; evict and unpin: "
                    "all)")
        ->type_name("NODE");
    line.app().add_option("--workspace", out.workspace, "workspace (default: main)")->type_name("NAME");
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, parse_with_format(line, arguments, out));
    if (help) return {*help};
    if (!out.action.empty() && out.table.empty()) {
        return Status(Code::invalid_argument, out.action + " needs a TABLE");
    }
    return {out};
}

Parsed<ExplainRouteArguments> parse_explain_route_arguments(const std::vector<std::string> &arguments) {
    CommandLine line("explain-route", "Says on which node a statement would run and why, without running it.");
    ExplainRouteArguments out;
    line.app().add_option("SQL", out.sql, "the statement")->required();
    line.app().add_option("--workspace", out.workspace, "workspace (default: main)")->type_name("NAME");
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, parse_with_format(line, arguments, out));
    if (help) return {*help};
    return {out};
}

Parsed<ImportArguments> parse_import_arguments(const std::vector<std::string> &arguments) {
    CommandLine line(
        "import",
        "Takes Parquet and CSV files into a table: all of them, or nothing when one cannot be read. A table "
        "that does not exist is made with the files' columns; one that does gets their rows. Files are told "
        "apart by their names: .parquet, .csv, .csv.gz, .tsv, .tsv.gz.");
    ImportArguments out;
    line.app()
        .add_option("FILE", out.files, "files, globs (quoted ones too; ** crosses directories) or directories")
        ->required();
    line.app().add_option("--into", out.into, "the table: TABLE or SCHEMA.TABLE")->type_name("TABLE")->required();
    line.app().add_option("--workspace", out.workspace, "workspace (default: main)")->type_name("NAME");
    line.app().add_option("--catalog", out.catalog, "catalog (default: the workspace's)")->type_name("NAME");
    line.app().add_flag("-q,--quiet", out.quiet, "no progress on standard error");
    bool in_place = false, from_pool = false;
    line.app().add_flag("--from-pool", from_pool,
                        "the pool's nodes read the files themselves, instead of this machine sending them: FILE is a "
                        "path of theirs below a folder that the setting external names; s3://… always is");
    RegisterFiles files;
    std::string hive;
    line.app().add_flag("--in-place", in_place,
                        "Parquet stays where it lies, as the pool sees it, and is not copied: FILE is a path of the "
                        "pool's machines or s3://…, below a folder that its setting external names; a folder stands "
                        "for the *.parquet below it");
    line.app().add_flag("--allow-missing", files.allow_missing, "in place: a file may lack columns of the table");
    line.app().add_flag("--ignore-extra", files.ignore_extra,
                        "in place: a file may have columns that the table has not");
    line.app().add_flag("--skip-registered", files.skip_registered,
                        "in place: files that the table reads already are passed over");
    line.app()
        .add_option("--hive-partitioning", hive,
                    "in place: KEY=VALUE in a path is a column (default: where all paths have the same keys)")
        ->check(CLI::IsMember({"yes", "no"}));
    line.add_pool(out.pool);
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(arguments));
    if (help) return {*help};
    if (!hive.empty()) files.hive_partitioning = hive == "yes";
    if (!in_place && files != RegisterFiles()) {
        return Status(Code::invalid_argument,
                      "--allow-missing, --ignore-extra, --skip-registered and "
                      "--hive-partitioning are for --in-place");
    }
    if (in_place) {
        files.patterns = std::exchange(out.files, {});
        out.in_place = std::move(files);
        if (from_pool) return Status(Code::invalid_argument, "--from-pool copies, --in-place does not: take one");
        return {out};
    }
    const auto is_remote = [](const std::string &file) { return file.find("://") != std::string::npos; };
    const auto remote = std::ranges::count_if(out.files, is_remote);
    if (from_pool || remote == std::ssize(out.files)) {
        out.sources = std::exchange(out.files, {});
    } else if (remote > 0) {
        return Status(Code::invalid_argument, "files of this machine and of a store don't go into one import");
    }
    return {out};
}

Parsed<ConfigArguments> parse_config_arguments(const std::vector<std::string> &arguments) {
    CommandLine line(
        "config",
        "Prints each setting with its value, where the value comes from, and what it means, as `roost up` would "
        "have it with the same flags, variables and roost.toml. Name gateway or node for theirs.");
    ConfigArguments out;
    line.app().add_flag("--json", out.json, "as JSON");
    std::vector<std::string> rest;
    bool help = false;
    for (const std::string &word : arguments) {
        if (word == "--json") {
            out.json = true;
        } else if (word == "-h" || word == "--help") {
            help = true;
        } else if (rest.empty() && (word == "up" || word == "gateway" || word == "node")) {
            out.command = word == "up"     ? config::Command::up
                          : word == "node" ? config::Command::node
                                           : config::Command::gateway;
        } else {
            rest.push_back(word);
        }
    }
    // The flags of the command are config's to judge.
    out.flags = rest;
    if (!help) return {out};
    return {HelpText{line.app().help() + "\nSettings, as flags:\n" + config::print_flags(out.command)}};
}

namespace {

// What a run of the simulator is made of. The defaults that are shown are those of sim/.
void add_pool_model(CLI::App &app, sim::PoolOptions &pool, std::vector<std::string> &changes) {
    app.add_option("--weights", pool.weights, "vCPUs of each node (default: 8 nodes of 4)")->delimiter(',');
    app.add_option("--slots", pool.slots, "statements that a node has memory for at once")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--cache-ratio", pool.cache_ratio, "all caches together, as a multiple of the data")
        ->check(CLI::Range(0.0, 1e6));
    app.add_option("--store-wait-us", pool.store_wait_us, "until the store's first byte")->check(CLI::Range(0.0, 1e9));
    app.add_option("--store-bytes-per-us", pool.store_bytes_per_us, "speed of a download")
        ->check(CLI::Range(1e-3, 1e9));
    app.add_flag("!--wait-at-first", pool.no_wait, "statements wait at their first node instead of asking the others");
    app.add_option("--gateways", pool.gateways, "each with a directory of its own")->check(CLI::Range(1, 64));
    app.add_option("--change", changes, "KIND@COUNT[:NODE[:WEIGHT]]: join, die, restart, replace or reweigh a node")
        ->delimiter(',');
}

void add_workload(CLI::App &app, sim::WorkloadOptions &workload) {
    app.add_option("--units", workload.units, "tables")->check(CLI::Range(1, 10'000'000));
    app.add_option("--unit-bytes", workload.unit_bytes, "mean size")->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
    app.add_option("--size-spread", workload.size_spread, "sigma of the logarithm of sizes")
        ->check(CLI::Range(0.0, 4.0));
    app.add_option("--zipf", workload.zipf, "exponent: how much hotter the hot ones are")->check(CLI::Range(0.0, 5.0));
    app.add_option("--writes", workload.write_share, "share of statements that write")->check(CLI::Range(0.0, 1.0));
    app.add_option("--joins", workload.join_share, "share that read two tables")->check(CLI::Range(0.0, 1.0));
    app.add_option("--tenants", workload.tenants, "each with tables of its own, busy by turns")
        ->check(CLI::Range(1, 100'000));
    app.add_option("--scan-every", workload.scan_every, "statements between two scans of everything (0: none)");
    app.add_option("--cpu-us", workload.cpu_us, "mean CPU time of a statement")->check(CLI::Range(1.0, 1e9));
}

}  // namespace

Parsed<sim::SimCommand> parse_sim_placement_arguments(const std::vector<std::string> &arguments) {
    CommandLine line(
        "sim placement",
        "Runs a workload over a modelled pool with roost's own placement, each policy in turn: least_loaded, "
        "round_robin, segments, seed (seed 000 exactly), plain (one cap for all), impatient (waits at no home that "
        "is full while others have room), affinity (the default). "
        "Statements are made from a seed, or read from a trace.");
    sim::SimCommand out;
    std::vector<std::string> changes;
    CLI::App &app = line.app();
    add_pool_model(app, out.pool, changes);
    add_workload(app, out.workload);
    app.add_option("--in-flight", out.in_flight, "statements in flight a node; a run at each")->delimiter(',');
    app.add_option("--policies", out.policies, "which to run")->delimiter(',');
    app.add_option("--cap-c", out.placement.cap.c, "cap: so many times the mean of the others")
        ->check(CLI::Range(1.0, 1e6));
    app.add_option("--cap-slack", out.placement.cap.slack, "cap: at least so many statements a vCPU")
        ->check(CLI::Range(0.0, 1e6));
    app.add_option("--patience", out.placement.patience,
                   "how long a statement waits at its home, in what reading cold elsewhere takes")
        ->check(CLI::Range(0.0, 1e3));
    app.add_option("--patience-beside-idle", out.placement.patience_beside_idle,
                   "so much of that when another node has nothing to do")
        ->check(CLI::Range(0.0, 1.0));
    CLI::Option *warmup = app.add_option("--warmup", out.plan.warmup_statements, "statements before measuring");
    app.add_option("--statements", out.plan.statements, "statements measured");
    app.add_option("--seed", out.seed, "of everything random");
    app.add_option("--trace", out.trace, "a recorded trace instead")->type_name("FILE");
    app.add_option("--write-trace", out.write_trace, "write the statements there and run nothing")->type_name("FILE");
    app.add_flag("--markdown", out.markdown, "print a Markdown table");
    app.get_formatter()->column_width(34);
    for (CLI::Option *option : app.get_options()) option->capture_default_str();
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(arguments));
    if (help) return {*help};
    if (!out.trace.empty() && warmup->count() == 0) out.plan.warmup_statements = 0;
    for (const std::string &each : changes) {
        ROOST_ASSIGN_OR_RETURN(sim::MembershipChange change, sim::parse_change(each));
        out.plan.changes.push_back(change);
    }
    for (const uint32_t weight : out.pool.weights) {
        if (weight == 0) return Status(Code::invalid_argument, "a node has one vCPU at least");
    }
    return {out};
}

Parsed<sim::AdmissionCommand> parse_sim_admission_arguments(const std::vector<std::string> &arguments) {
    CommandLine line(
        "sim admission",
        "Runs a workload over a modelled node with roost's own ledger of memory, each profile in turn: auto, "
        "single, equal_2, decaying_2, decaying_3, and none (no admission: each statement has 80 % of the "
        "memory). Statements are made from a seed, or read from a trace.");
    sim::AdmissionCommand out;
    uint64_t memory_mib = out.node.memory_bytes >> 20;
    double seconds = static_cast<double>(out.workload.duration_us) / 1e6;
    double wait_seconds = static_cast<double>(out.node.admission_wait_us) / 1e6;
    double think_ms = out.workload.think_us / 1e3;
    bool no_feedback = false;
    CLI::App &app = line.app();
    app.add_option("--profiles", out.profiles, "which to run")->delimiter(',');
    app.add_option("--memory-mib", memory_mib, "effective memory of the node")->check(CLI::Range(512, 1 << 26));
    app.add_option("--cpus", out.node.cpus, "of the node")->check(CLI::Range(1, 4096));
    app.add_option("--users", out.workload.users, "people")->check(CLI::Range(1, 1000));
    app.add_option("--clients", out.workload.clients, "of each, a statement at a time")->check(CLI::Range(1, 1000));
    app.add_option("--flood", out.workload.flood, "more clients of the first user")->check(CLI::Range(0, 10'000));
    app.add_option("--small-share", out.workload.small_share, "of statements: point reads")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--session-share", out.workload.session_share, "of clients: sessions that keep their cache")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--peak", out.workload.peak_median, "median peak, as a part of the memory")
        ->check(CLI::Range(1e-4, 1.0));
    app.add_option("--estimate-factor", out.workload.estimate_factor, "median of what a plan says / what is used")
        ->check(CLI::Range(0.01, 1000.0));
    app.add_option("--floor-fraction", out.node.floor_fraction, "of what is wanted: with less a statement waits")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--alone-share", out.node.alone_share, "of the CPUs, that a statement can use alone")
        ->check(CLI::Range(0.001, 1.0));
    app.add_option("--cold-cost", out.node.cold_cost, "time more on a scan with nothing cached")
        ->check(CLI::Range(0.0, 100.0));
    app.add_option("--spill-cost", out.node.spill_cost, "time more on a statement that spills all")
        ->check(CLI::Range(0.0, 100.0));
    app.add_flag("--sessions-keep-slots", out.node.sessions_keep_slots, "under a ladder, between their statements");
    app.add_option("--think-ms", think_ms, "mean pause of a client")->check(CLI::Range(0.0, 1e9));
    app.add_option("--seconds", seconds, "that are simulated")->check(CLI::Range(1.0, 1e6));
    app.add_option("--admission-wait-s", wait_seconds, "longest wait; 0: at once")->check(CLI::Range(0.0, 1e6));
    app.add_option("--seed", out.node.seed, "of everything random");
    app.add_option("--trace", out.trace, "a recorded trace instead")->type_name("FILE");
    app.add_flag("--no-feedback", no_feedback, "size from the plan alone");
    app.add_flag("--markdown", out.markdown, "print a Markdown table");
    app.get_formatter()->column_width(34);
    for (CLI::Option *option : app.get_options()) option->capture_default_str();
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(arguments));
    if (help) return {*help};
    out.node.memory_bytes = memory_mib << 20;
    out.node.admission_wait_us = static_cast<int64_t>(wait_seconds * 1e6);
    out.node.feedback = !no_feedback;
    out.workload.duration_us = static_cast<int64_t>(seconds * 1e6);
    out.workload.think_us = think_ms * 1e3;
    return {out};
}

}  // namespace roost::app
