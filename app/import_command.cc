// `roost import`: uploads files to the pool's staging, then has them taken into a table in one transaction. Whatever
// fails or is interrupted on the way leaves nothing behind.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "app/client_arguments.h"
#include "app/commands.h"
#include "app/import_files.h"
#include "app/interrupt.h"
#include "app/pool_address.h"
#include "app/pool_client.h"
#include "app/statement_runner.h"

namespace roost::app {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int64_t kFirstWait_ms = 500;
constexpr auto kRedrawEvery = std::chrono::milliseconds(200);

// "12.3 MB": for people, powers of 1000 as in transfer rates.
std::string human_bytes(double bytes) {
    static constexpr const char *kUnits[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
    return text;
}

// One line on stderr that is drawn over; nothing when nobody watches.
class Progress {
public:
    Progress(bool enabled, uint64_t total_bytes) : enabled_(enabled), total_bytes_(total_bytes) {}
    ~Progress() { clear(); }

    void sent(uint64_t bytes, size_t file, size_t files) {
        const auto now = SteadyClock::now();
        if (!enabled_ || now - drawn_ < kRedrawEvery) return;
        drawn_ = now;
        const double seconds = std::chrono::duration<double>(now - began_).count();
        const double share = total_bytes_ == 0 ? 1 : static_cast<double>(bytes) / static_cast<double>(total_bytes_);
        const int filled = static_cast<int>(share * kBarWidth);
        std::fprintf(stderr, "\r\033[Kuploading [%s%s] %3.0f %%  %s of %s  %s/s  file %zu of %zu",
                     std::string(static_cast<size_t>(filled), '#').c_str(),
                     std::string(static_cast<size_t>(kBarWidth - filled), '.').c_str(), share * 100,
                     human_bytes(static_cast<double>(bytes)).c_str(),
                     human_bytes(static_cast<double>(total_bytes_)).c_str(),
                     human_bytes(seconds > 0 ? static_cast<double>(bytes) / seconds : 0).c_str(), file, files);
        std::fflush(stderr);
    }

    void importing(const StatementState &state) {
        if (!enabled_) return;
        const double seconds = std::chrono::duration<double>(SteadyClock::now() - began_).count();
        const std::string what = state.wait.empty() ? "importing" : printable(state.wait);
        std::fprintf(stderr, "\r\033[K%s, %.0f s", what.c_str(), seconds);
        if (state.progress >= 0) std::fprintf(stderr, ", %.0f %%", state.progress);
        std::fflush(stderr);
    }

    void clear() {
        if (enabled_) std::fputs("\r\033[K", stderr);
    }

private:
    static constexpr int kBarWidth = 24;
    const bool enabled_;
    const uint64_t total_bytes_;
    const SteadyClock::time_point began_ = SteadyClock::now();
    SteadyClock::time_point drawn_{};
};

uint64_t total_bytes(const std::vector<ImportFile> &files) {
    uint64_t sum = 0;
    for (const ImportFile &file : files) sum += file.size_bytes;
    return sum;
}

Status upload_all(PoolClient &client, Interrupt &interrupt, const ImportTarget &target,
                  const std::vector<ImportFile> &files, Progress &progress) {
    // A stalled upload is broken off from outside; between two requests the flag is enough.
    interrupt.set_hook([&client] { client.stop(); });
    Status status;
    uint64_t before_bytes = 0;
    for (size_t i = 0; i < files.size() && status.ok(); ++i) {
        status = client.upload(target, files[i], [&](uint64_t sent_bytes) {
            progress.sent(before_bytes + sent_bytes, i + 1, files.size());
            return !interrupt.requested();
        });
        before_bytes += files[i].size_bytes;
        if (!status.ok() && status.code() != Code::cancelled) {
            Error named = status.error();
            named.message = files[i].path + ": " + named.message;
            status = Status(std::move(named));
        }
    }
    interrupt.set_hook({});
    if (interrupt.take()) return Status(Code::cancelled, "interrupted");
    return status;
}

// Waits for the end of what the pool has begun.
Result<StatementState> finish(PoolClient &client, Interrupt &interrupt, StatementState begun, Progress &progress) {
    ROOST_ASSIGN_OR_RETURN(StatementState state, follow(client, interrupt, std::move(begun),
                                                        [&](const StatementState &now) { progress.importing(now); }));
    ROOST_RETURN_IF_ERROR(outcome(state));
    return state;
}

Result<StatementState> import_all(PoolClient &client, Interrupt &interrupt, const ImportTarget &target,
                                  const std::vector<ImportFile> &files, Progress &progress) {
    ROOST_RETURN_IF_ERROR(upload_all(client, interrupt, target, files, progress));
    progress.importing({});
    ROOST_ASSIGN_OR_RETURN(StatementState state, client.run_import(target, files, kFirstWait_ms));
    return finish(client, interrupt, std::move(state), progress);
}

int import_files(PoolClient &client, const ImportArguments &arguments, const ImportTarget &target,
                 const std::vector<ImportFile> &files) {
    Interrupt interrupt;
    if (Status status = client.check_workspace(target.workspace); !status.ok()) return print_error("import", status);
    const uint64_t bytes = total_bytes(files);
    const auto began = SteadyClock::now();
    Result<StatementState> imported = [&] {
        Progress progress(!arguments.quiet && ::isatty(STDERR_FILENO) == 1, bytes);
        return import_all(client, interrupt, target, files, progress);
    }();
    const Status dropped = client.drop_import(target);
    if (!imported.ok()) {
        const int status = print_error("import", imported.status());
        std::cerr << "  nothing was imported\n";
        if (!dropped.ok())
            std::cerr << "  the uploaded files could not be removed from staging: " << dropped.message() << "\n";
        return status == kExitUsage ? kExitFailed : status;
    }
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - began).count();
    std::cout << "imported ";
    if (imported->row_count) std::cout << *imported->row_count << " rows ";
    std::printf("from %zu %s (%s) into %s in %.1f s\n", files.size(), files.size() == 1 ? "file" : "files",
                human_bytes(static_cast<double>(bytes)).c_str(), arguments.into.c_str(), seconds);
    return kExitDone;
}

Result<StatementState> register_all(PoolClient &client, Interrupt &interrupt, const ImportTarget &target,
                                    const ImportArguments &arguments, Progress &progress) {
    ROOST_ASSIGN_OR_RETURN(StatementState state, arguments.in_place
                                                     ? client.run_in_place(target, *arguments.in_place, kFirstWait_ms)
                                                     : client.run_import_of(target, arguments.sources, kFirstWait_ms));
    return finish(client, interrupt, std::move(state), progress);
}

// The pool lists and reads the files, nothing is uploaded.
int register_files(PoolClient &client, const ImportArguments &arguments, const ImportTarget &target) {
    Interrupt interrupt;
    if (Status status = client.check_workspace(target.workspace); !status.ok()) return print_error("import", status);
    const auto began = SteadyClock::now();
    const Result<StatementState> registered = [&] {
        Progress progress(!arguments.quiet && ::isatty(STDERR_FILENO) == 1, 0);
        return register_all(client, interrupt, target, arguments, progress);
    }();
    if (!registered.ok()) {
        const int status = print_error("import", registered.status());
        std::cerr << (arguments.in_place ? "  nothing was registered\n" : "  nothing was imported\n");
        return status == kExitUsage ? kExitFailed : status;
    }
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - began).count();
    std::cout << (arguments.in_place ? "registered " : "imported ") << registered->row_count.value_or(0)
              << (arguments.in_place ? " rows in place" : " rows");
    std::printf(" into %s in %.1f s\n", arguments.into.c_str(), seconds);
    return kExitDone;
}

// The pool's processes have a working directory of their own.
void make_absolute(std::vector<std::string> &patterns) {
    for (std::string &pattern : patterns) {
        if (pattern.find("://") != std::string::npos) continue;
        const bool folder = pattern.ends_with('/');
        pattern = std::filesystem::absolute(pattern).lexically_normal().string();
        if (folder && !pattern.ends_with('/')) pattern += '/';
    }
}

}  // namespace

int import_main(const std::vector<std::string> &words) {
    const auto parsed = parse_import_arguments(words);
    if (!parsed.ok()) return print_error("import", parsed.status());
    if (const auto *help = std::get_if<HelpText>(&*parsed)) {
        std::cout << help->text;
        return kExitDone;
    }
    auto arguments = std::get<ImportArguments>(*parsed);
    const auto table = parse_table_name(arguments.into);
    if (!table.ok()) return print_error("import", table.status());
    const bool by_nodes = arguments.in_place || !arguments.sources.empty();
    const auto files =
        by_nodes ? Result<std::vector<ImportFile>>(std::vector<ImportFile>()) : expand_import_files(arguments.files);
    if (!files.ok()) return print_error("import", files.status());
    make_absolute(arguments.in_place ? arguments.in_place->patterns : arguments.sources);
    const auto address = find_pool(arguments.pool, config::process_environment());
    if (!address.ok()) return print_error("import", address.status());
    const auto client = PoolClient::connect(*address);
    if (!client.ok()) return print_error("import", client.status());
    const ImportTarget target{arguments.workspace, Uuid::make().to_string(), *table, arguments.catalog};
    if (by_nodes) return register_files(**client, arguments, target);
    return import_files(**client, arguments, target, *files);
}

}  // namespace roost::app
