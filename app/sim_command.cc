// `roost sim placement` and `roost sim admission`: which policy, which profile would do what for a workload.
#include <iostream>

#include "app/client_arguments.h"
#include "app/commands.h"
#include "sim/admission_report.h"
#include "sim/report.h"

namespace roost::app {

namespace {

int sim_admission(const std::vector<std::string> &words) {
    const auto parsed = parse_sim_admission_arguments(words);
    if (!parsed.ok()) return print_error("sim admission", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const Status status = sim::run_admission_command(std::get<sim::AdmissionCommand>(*parsed), std::cout);
    return status.ok() ? kExitDone : print_error("sim admission", status);
}

}  // namespace

int sim_main(const std::vector<std::string> &words) {
    if (!words.empty() && words[0] == "admission") return sim_admission({words.begin() + 1, words.end()});
    if (words.empty() || words[0] != "placement") {
        const bool help = !words.empty() && (words[0] == "--help" || words[0] == "-h");
        (help ? std::cout : std::cerr) << "roost sim placement [FLAGS]   where statements go\n"
                                          "roost sim admission [FLAGS]   what memory they get there\n"
                                          "--help of each explains them\n";
        return help ? kExitDone : kExitUsage;
    }
    const auto parsed = parse_sim_placement_arguments({words.begin() + 1, words.end()});
    if (!parsed.ok()) return print_error("sim placement", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    const Status status = sim::run_command(std::get<sim::SimCommand>(*parsed), std::cout);
    return status.ok() ? kExitDone : print_error("sim placement", status);
}

}  // namespace roost::app
