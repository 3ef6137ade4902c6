#include <iostream>

#include "app/client_arguments.h"
#include "app/commands.h"

namespace roost::app {

int config_main(const std::vector<std::string> &words) {
    const auto parsed = parse_config_arguments(words);
    if (!parsed.ok()) return print_error("config", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const auto &arguments = std::get<ConfigArguments>(*parsed);
    const auto settings = config::load(arguments.command, arguments.flags, config::process_environment());
    if (!settings.ok()) {
        print_error("config", settings.status());
        return kExitUsage;
    }
    std::cout << (arguments.json ? config::print_json(*settings, arguments.command)
                                 : config::print_text(*settings, arguments.command));
    return kExitDone;
}

}  // namespace roost::app
