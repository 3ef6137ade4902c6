// `roost nodes`, `roost placement`, `roost cache` and `roost explain-route`: what the pool says of itself, and work on
// its caches.
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/client_arguments.h"
#include "app/commands.h"
#include "app/pool_address.h"
#include "app/pool_client.h"
#include "app/result_writer.h"

namespace roost::app {
namespace {

using nlohmann::json;

std::string text_of(const json &object, const char *name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string quoted(const std::string &text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

// "1536 MiB" of a number of bytes.
std::string mebibytes(const json &object, const char *name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number()) return "";
    return std::to_string(found->get<uint64_t>() >> 20) + " MiB";
}

void print_grid(OutputFormat format, const std::vector<ResultColumn> &columns,
                const std::vector<std::vector<std::string>> &cells) {
    const auto writer = make_result_writer(format, std::cout);
    writer->begin(columns);
    for (const auto &texts : cells) {
        std::vector<std::string> raw;
        for (const std::string &text : texts) raw.push_back(quoted(text));
        writer->row(ResultRow(raw.begin(), raw.end()));
    }
    writer->end();
}

Result<std::unique_ptr<PoolClient>> connect(const PoolArguments &arguments) {
    ROOST_ASSIGN_OR_RETURN(const PoolAddress address, find_pool(arguments, config::process_environment()));
    return PoolClient::connect(address);
}

int print_nodes(const json &nodes, OutputFormat format) {
    if (format == OutputFormat::json) {
        std::cout << nodes.dump(2) << "\n";
        return kExitDone;
    }
    std::vector<std::vector<std::string>> rows;
    for (const json &node : nodes) {
        if (!node.is_object()) continue;
        rows.push_back({text_of(node, "name"), text_of(node, "status"), text_of(node, "pid"), text_of(node, "cpus"),
                        text_of(node, "admission_profile"), mebibytes(node, "budget_bytes"),
                        mebibytes(node, "required_bytes"), mebibytes(node, "elastic_bytes"),
                        mebibytes(node, "used_bytes"), mebibytes(node, "resident_bytes"),
                        mebibytes(node.value("cache", json()), "warm_bytes"), text_of(node, "running"),
                        text_of(node, "waiting"), text_of(node, "load"), text_of(node, "id")});
    }
    print_grid(format,
               {{"node", ""},
                {"status", ""},
                {"pid", "BIGINT"},
                {"cpus", "BIGINT"},
                {"profile", ""},
                {"budget", "DOUBLE"},
                {"required", "DOUBLE"},
                {"elastic", "DOUBLE"},
                {"used", "DOUBLE"},
                {"resident", "DOUBLE"},
                {"cached", "DOUBLE"},
                {"running", "BIGINT"},
                {"waiting", "BIGINT"},
                {"load", "DOUBLE"},
                {"id", ""}},
               rows);
    return kExitDone;
}

// A row for each table and node; a table that is warm nowhere has one, unless only what is warm is wanted.
int print_placement(const json &tables, OutputFormat format, bool warm_only) {
    if (format == OutputFormat::json) {
        std::cout << tables.dump(2) << "\n";
        return kExitDone;
    }
    std::vector<std::vector<std::string>> rows;
    for (const json &table : tables) {
        if (!table.is_object()) continue;
        const std::string name =
            text_of(table, "catalog") + "." + text_of(table, "schema") + "." + text_of(table, "table");
        const json homes = table.value("homes", json::array());
        for (const json &home : homes) {
            if (!home.is_object() || (warm_only && home.value("warm_bytes", uint64_t{0}) == 0)) continue;
            const bool online = home.value("online", false);
            rows.push_back({name, mebibytes(table, "bytes"), text_of(home, "node"), mebibytes(home, "warm_bytes"),
                            text_of(home, "files"), online ? text_of(home, "state") : "offline", text_of(home, "epoch"),
                            text_of(home, "reading"), text_of(table, "owner")});
        }
        if (homes.empty() && !warm_only) {
            rows.push_back({name, mebibytes(table, "bytes"), "", "", "", "cold", "", "", text_of(table, "owner")});
        }
    }
    print_grid(format,
               {{"table", ""},
                {"size", "DOUBLE"},
                {"node", ""},
                {"warm", "DOUBLE"},
                {"files", "BIGINT"},
                {"state", ""},
                {"epoch", "BIGINT"},
                {"reading", "BIGINT"},
                {"owner", ""}},
               rows);
    return kExitDone;
}

int print_cache_done(const json &done, OutputFormat format) {
    if (format == OutputFormat::json) {
        std::cout << done.dump(2) << "\n";
        return kExitDone;
    }
    std::vector<std::vector<std::string>> rows;
    for (const json &node : done) {
        if (node.is_object()) rows.push_back({text_of(node, "node"), mebibytes(node, "bytes")});
    }
    print_grid(format, {{"node", ""}, {"bytes", "DOUBLE"}}, rows);
    return kExitDone;
}

int print_route(const json &route, OutputFormat format) {
    if (format == OutputFormat::json) {
        std::cout << route.dump(2) << "\n";
        return kExitDone;
    }
    if (format == OutputFormat::table) {
        std::cout << "statement  " << text_of(route, "kind") << "\nnode       " << text_of(route, "node")
                  << "\npolicy     " << text_of(route, "policy") << "\nreason     " << text_of(route, "reason")
                  << "\n\n";
    }
    std::vector<std::vector<std::string>> rows;
    for (const json &candidate : route.value("candidates", json::array())) {
        if (candidate.is_object()) {
            rows.push_back({text_of(candidate, "node"), text_of(candidate, "load"), text_of(candidate, "note")});
        }
    }
    print_grid(format, {{"candidate", ""}, {"load", "DOUBLE"}, {"note", ""}}, rows);
    return kExitDone;
}

}  // namespace

int nodes_main(const std::vector<std::string> &words) {
    const auto parsed = parse_nodes_arguments(words);
    if (!parsed.ok()) return print_error("nodes", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const auto &arguments = std::get<NodesArguments>(*parsed);
    const auto client = connect(arguments.pool);
    if (!client.ok()) return print_error("nodes", client.status());
    if (!arguments.action.empty()) {
        const auto node = arguments.profile.empty() ? (*client)->node_action(arguments.node, arguments.action)
                                                    : (*client)->set_profile(arguments.node, arguments.profile);
        if (!node.ok()) return print_error("nodes", node.status());
        return print_nodes(json::array({*node}), arguments.format);
    }
    const auto nodes = (*client)->nodes();
    if (!nodes.ok()) return print_error("nodes", nodes.status());
    return print_nodes(*nodes, arguments.format);
}

int placement_main(const std::vector<std::string> &words) {
    const auto parsed = parse_placement_arguments(words);
    if (!parsed.ok()) return print_error("placement", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const auto &arguments = std::get<PlacementArguments>(*parsed);
    const auto client = connect(arguments.pool);
    if (!client.ok()) return print_error("placement", client.status());
    const auto tables = (*client)->placement(arguments.workspace, arguments.table);
    if (!tables.ok()) return print_error("placement", tables.status());
    return print_placement(*tables, arguments.format, false);
}

int cache_main(const std::vector<std::string> &words) {
    const auto parsed = parse_cache_arguments(words);
    if (!parsed.ok()) return print_error("cache", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const auto &arguments = std::get<CacheArguments>(*parsed);
    const auto client = connect(arguments.pool);
    if (!client.ok()) return print_error("cache", client.status());
    if (arguments.action.empty()) {
        const auto tables = (*client)->placement(arguments.workspace, arguments.table);
        if (!tables.ok()) return print_error("cache", tables.status());
        return print_placement(*tables, arguments.format, true);
    }
    const auto done = (*client)->cache_work(arguments.workspace, arguments.action, arguments.table, arguments.node);
    if (!done.ok()) return print_error("cache", done.status());
    return print_cache_done(*done, arguments.format);
}

int explain_route_main(const std::vector<std::string> &words) {
    const auto parsed = parse_explain_route_arguments(words);
    if (!parsed.ok()) return print_error("explain-route", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const auto &arguments = std::get<ExplainRouteArguments>(*parsed);
    const auto client = connect(arguments.pool);
    if (!client.ok()) return print_error("explain-route", client.status());
    const auto route = (*client)->explain_route(arguments.workspace, arguments.sql);
    if (!route.ok()) return print_error("explain-route", route.status());
    if (!route->is_object())
        return print_error("explain-route", Status(Code::data_loss, "the server's answer is no route"));
    return print_route(*route, arguments.format);
}

}  // namespace roost::app
