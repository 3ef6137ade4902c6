// `roost sample-fill`: makes the lake when there is none, and fills it with the sample when it is empty. A process of
// its own, so that the memory it takes is gone when the nodes start.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "app/child_process.h"
#include "app/commands.h"
#include "app/layout.h"
#include "config/machine.h"
#include "engine/sample.h"

namespace roost::app {
namespace {

// A line for a person, to the pipe when `roost up` listens.
void say(int progress_fd, const std::string &line) {
    if (progress_fd < 0) return;
    // Nobody reads any more: then nobody misses it.
    [[maybe_unused]] const ssize_t n = ::write(progress_fd, (line + "\n").data(), line.size() + 1);
}

Status fill(const config::Settings &settings, int progress_fd) {
    const LakeLocation lake = lake_of(settings);
    const config::Machine machine = config::read_machine();
    SampleOptions options;
    options.extension_dir = extension_dir();
    options.spill_dir = settings.dir + "/sample-fill";
    options.threads = machine.cpus;
    std::error_code ignored;  // nothing is there, most of the time
    std::filesystem::remove_all(options.spill_dir, ignored);
    for (const LakeLocation &each : lakes_of(settings)) ROOST_RETURN_IF_ERROR(create_lake(each, options));
    if (settings.sample.none()) return {};
    const std::string what = "filling the empty lake with " + settings.sample.to_string() + ": ";
    return fill_tpch(
        lake, settings.sample.tpch_scale_factor, options, [&](const std::string &step, uint32_t done, uint32_t of) {
            say(progress_fd, what + step + " (" + std::to_string(done) + " of " + std::to_string(of) + ")");
        });
}

}  // namespace

int sample_fill_main(const config::Settings &settings) {
    const bool supervised = std::getenv(kProgressVariable) != nullptr;
    const Status status = fill(settings, supervised ? kChildPipe : -1);
    std::error_code ignored;  // scratch
    std::filesystem::remove_all(settings.dir + "/sample-fill", ignored);
    return status.ok() ? kExitDone : print_error("sample-fill", status);
}

}  // namespace roost::app
