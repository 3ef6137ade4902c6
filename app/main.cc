// roost: one binary, subcommands. Chooses one, and turns its settings or its failure into an exit status (commands.h
// says which).
#include <signal.h>
#include <sys/prctl.h>

#include <clocale>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "config/settings.h"
#include "deps/version.h"

namespace roost::app {
namespace {

using Arguments = std::vector<std::string>;

struct Subcommand {
    std::string name, summary;
    std::function<int(const Arguments &)> run;
    bool hidden = false;
};

bool wants_help(const Arguments &arguments) {
    for (const std::string &word : arguments) {
        if (word == "--help" || word == "-h") return true;
    }
    return false;
}

// A subcommand that is a process with settings.
std::function<int(const Arguments &)> with_settings(const std::string &name, config::Command command,
                                                    int (*run)(const config::Settings &),
                                                    const std::string &explanation) {
    return [=](const Arguments &arguments) {
        if (wants_help(arguments)) {
            std::cout << "roost " << name << " [FLAGS]\n\n"
                      << explanation << "\n\n"
                      << config::print_flags(command)
                      << "\nEach is also a variable (ROOST_NODE_MEMORY for --node-memory) and a key of roost.toml "
                         "(node_memory).\n"
                         "A flag beats a variable beats the file. `roost config` shows what they come to.\n";
            return kExitDone;
        }
        const auto settings = config::load(command, arguments, config::process_environment());
        if (!settings.ok()) {
            print_error(name, settings.status());
            return kExitUsage;
        }
        return run(*settings);
    };
}

int version_main(const Arguments &) {
    std::cout << "roost " << deps::kRoostVersion << "\n";
    return kExitDone;
}

int help_main(const Arguments &);

const std::vector<Subcommand> &subcommands() {
    using config::Command;
    static const std::vector<Subcommand> table{
        {"up", "bring up a pool on this machine: a gateway and its nodes, kept running until Ctrl-C",
         with_settings("up", Command::up, up_main,
                       "Brings up a pool on this machine: a gateway and node processes, restarted when they crash, "
                       "stopped together "
                       "on Ctrl-C\nor SIGTERM. Prints how to connect once the pool answers queries. The first start "
                       "makes an admin user "
                       "(DIR/credentials)\nand fills the empty lake with a sample.")},
        {"sql", "run SQL and print the result", sql_main},
        {"import", "take Parquet and CSV files into a table", import_main},
        {"nodes", "list the nodes of a pool", nodes_main},
        {"placement", "say on which nodes tables are warm", placement_main},
        {"cache", "list what is warm by node and table; warm, pin, evict", cache_main},
        {"explain-route", "say on which node a statement would run and why", explain_route_main},
        {"config", "print every setting with its value, source and meaning", config_main},
        {"sim", "run workloads over a modelled pool: sim placement | admission", sim_main},
        {"version", "print the version", version_main},
        {"gateway", "run a gateway",
         with_settings("gateway", Command::gateway, gateway_main,
                       "Runs a gateway: clients connect to it, nodes join it.")},
        {"node", "run a node",
         with_settings("node", Command::node, node_main,
                       "Runs a node: joins a gateway and executes statements. Needs --join, --token-file and --dir.")},
        {"sample-fill", "fill an empty lake",
         with_settings("sample-fill", Command::gateway, sample_fill_main,
                       "Fills the lake with the sample if it is empty."),
         true},
        {"help", "show this text", help_main, true},
    };
    return table;
}

int help_main(const Arguments &) {
    std::cout << "roost: a pool of DuckDB nodes that behaves as one warehouse\n\nroost COMMAND …\n\n";
    for (const Subcommand &command : subcommands()) {
        if (command.hidden) continue;
        std::cout << "  " << command.name << std::string(15 - command.name.size(), ' ') << command.summary << "\n";
    }
    std::cout << "\n`roost COMMAND --help` explains one. Exit status: 0 done, 1 failed, 2 wrong command line or "
                 "setting, 130 interrupted.\n";
    return kExitDone;
}

int unknown(const std::string &word) {
    std::vector<std::string_view> names;
    for (const Subcommand &command : subcommands()) {
        if (!command.hidden) names.push_back(command.name);
    }
    const std::string_view near = config::nearest(word, names);
    std::cerr << "roost: unknown command '" << word.substr(0, 80) << "'\n"
              << (near.empty() ? "  `roost help` lists them" : "  did you mean " + std::string(near) + "?") << "\n";
    return kExitUsage;
}

int run(const Arguments &words) {
    if (words.empty()) {
        help_main({});
        return kExitUsage;
    }
    std::string name = words.front();
    if (name == "--help" || name == "-h") name = "help";
    if (name == "--version" || name == "-V") name = "version";
    for (const Subcommand &command : subcommands()) {
        if (command.name != name) continue;
        // What ps and top show; the children of `roost up` are started by a link whose name says nothing.
        ::prctl(PR_SET_NAME, ("roost-" + name).c_str());
        return command.run(Arguments(words.begin() + 1, words.end()));
    }
    return unknown(name);
}

}  // namespace
}  // namespace roost::app

int main(int argc, char **argv) {
    // Widths of characters; everything else stays in the C locale.
    std::setlocale(LC_CTYPE, "C.UTF-8");
    // A peer or a pager that went away is an error of that write.
    ::signal(SIGPIPE, SIG_IGN);
    try {
        return roost::app::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "roost: internal error: %s\n", error.what());
        return roost::app::kExitFailed;
    }
}
