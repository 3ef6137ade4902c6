#include <iostream>

#include "app/commands.h"

namespace roost::app {

int print_error(std::string_view command, const Status &error) {
    std::cerr << "roost " << command << ": " << error.message() << "\n";
    if (!error.error().detail.empty()) std::cerr << "  " << error.error().detail << "\n";
    if (!error.error().hint.empty()) std::cerr << "  " << error.error().hint << "\n";
    switch (error.code()) {
        case Code::invalid_argument:
        case Code::unimplemented:
            return kExitUsage;
        case Code::cancelled:
            return kExitInterrupted;
        default:
            return kExitFailed;
    }
}

}  // namespace roost::app
