#include "app/client_arguments.h"

#include <CLI/CLI.hpp>
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
    CommandLine line("nodes", "Lists the nodes of a pool: their state, load and memory.");
    NodesArguments out;
    std::string format;
    line.add_format(format);
    line.add_pool(out.pool);
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(arguments));
    if (help) return {*help};
    ROOST_RETURN_IF_ERROR(take_format(format, out.format));
    return {out};
}

Parsed<ExplainRouteArguments> parse_explain_route_arguments(const std::vector<std::string> &arguments) {
    CommandLine line("explain-route", "Says on which node a statement would run and why, without running it.");
    ExplainRouteArguments out;
    std::string format;
    line.app().add_option("SQL", out.sql, "the statement")->required();
    line.app().add_option("--workspace", out.workspace, "workspace (default: main)")->type_name("NAME");
    line.add_format(format);
    line.add_pool(out.pool);
    ROOST_ASSIGN_OR_RETURN(const std::optional<HelpText> help, line.parse(arguments));
    if (help) return {*help};
    ROOST_RETURN_IF_ERROR(take_format(format, out.format));
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
    line.app().add_flag("-q,--quiet", out.quiet, "no progress on standard error");
    bool in_place = false;
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

}  // namespace roost::app
