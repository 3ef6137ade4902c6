// `roost nodes` and `roost explain-route`: what the pool says of itself.
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
                        mebibytes(node, "budget_bytes"), mebibytes(node, "granted_bytes"),
                        mebibytes(node, "resident_bytes"), text_of(node, "running"), text_of(node, "waiting"),
                        text_of(node, "load"), text_of(node, "id")});
    }
    print_grid(format,
               {{"node", ""},
                {"status", ""},
                {"pid", "BIGINT"},
                {"cpus", "BIGINT"},
                {"budget", "DOUBLE"},
                {"granted", "DOUBLE"},
                {"resident", "DOUBLE"},
                {"running", "BIGINT"},
                {"waiting", "BIGINT"},
                {"load", "DOUBLE"},
                {"id", ""}},
               rows);
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
    const auto nodes = (*client)->nodes();
    if (!nodes.ok()) return print_error("nodes", nodes.status());
    return print_nodes(*nodes, arguments.format);
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
