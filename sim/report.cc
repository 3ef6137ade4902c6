#include "sim/report.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <sstream>

namespace roost::sim {
namespace {

using placement::Outcome;

constexpr const char *kColumns[] = {"in flight",      "policy",  "misses %",      "top-ups %",     "store ÷ read",
                                    "store ÷ unique", "wait ms", "beside free %", "beside idle %", "mean ms",
                                    "p99 ms",         "stretch", "max ÷ mean",    "copies",        "overflows",
                                    "passed on",      "gave up", "decision µs"};

std::string number(double value, int digits) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::vector<std::string> cells(uint32_t in_flight, const std::string &policy, const RunResult &run) {
    const auto reads = static_cast<double>(run.unit_reads), statements = static_cast<double>(run.statements);
    return {in_flight > 0 ? std::to_string(in_flight) : "trace",
            policy,
            number(100 * share(static_cast<double>(run.misses), reads), 2),
            number(100 * share(static_cast<double>(run.top_ups), reads), 2),
            number(share(static_cast<double>(run.store_bytes), static_cast<double>(run.read_bytes)), 4),
            number(run.store_to_unique, 3),
            number(share(run.waited_us, statements) / 1e3, 1),
            number(100 * share(run.free_beside_us, run.waited_us), 2),
            number(100 * share(run.idle_beside_us, run.waited_us), 2),
            number(run.mean_us / 1e3, 0),
            number(run.p99_us / 1e3, 0),
            number(run.mean_stretch, 2),
            number(run.served_max_to_mean, 2),
            number(run.homes_per_unit, 2),
            std::to_string(run.outcomes[static_cast<size_t>(Outcome::overflow)]),
            std::to_string(run.passed_on),
            std::to_string(run.gave_up),
            number(run.decide_us, 1)};
}

// Characters, not bytes: the headings have some that take two.
size_t width(const std::string &text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

void print_row(std::ostream &out, const std::vector<std::string> &row, bool markdown) {
    for (size_t i = 0; i < row.size(); ++i) {
        if (markdown) {
            out << (i == 0 ? "| " : " | ") << row[i];
        } else {
            const size_t room = std::max<size_t>(width(kColumns[i]), i == 1 ? 12 : 0);
            const std::string fill(room > width(row[i]) ? room - width(row[i]) : 0, ' ');
            out << (i == 0 ? "" : "  ") << (i == 1 ? row[i] + fill : fill + row[i]);
        }
    }
    out << (markdown ? " |\n" : "\n");
    out.flush();
}

Result<std::unique_ptr<Workload>> workload_of(const SimCommand &command) {
    if (command.trace.empty()) return make_synthetic(command.workload, command.seed);
    std::ifstream file(command.trace);
    if (!file) return Status(Code::not_found, "cannot read the trace '" + command.trace + "'");
    return read_trace(file);
}

Status write_statements(const SimCommand &command) {
    ROOST_ASSIGN_OR_RETURN(const auto workload, workload_of(command));
    std::ofstream file(command.write_trace);
    write_trace(file, *workload, command.plan.warmup_statements + command.plan.statements);
    file.close();
    if (!file) return Status(Code::io_error, "cannot write the trace '" + command.write_trace + "'");
    return Status();
}

void print_moves(std::ostream &out, const std::string &policy, const RunResult &run) {
    for (size_t i = 0; i < run.moved.size(); ++i) {
        out << "  " << policy << ": change " << i + 1 << " moved the rank of " << run.moved[i] << " units, "
            << run.failed << " statements lost their node and ran elsewhere\n";
    }
}

}  // namespace

std::vector<std::string> policy_names() {
    return {"least_loaded", "round_robin", "segments", "seed", "plain", "impatient", "affinity"};
}

Result<Policy> policy_named(const std::string &name, const placement::DirectoryOptions &base) {
    Policy policy{name, base};
    policy.options.mode = placement::Mode::affinity;
    if (name == "affinity") return policy;
    if (name == "plain" || name == "impatient") {
        policy.options.cap.by_demand = policy.options.cap.by_demand && name == "impatient";
        policy.options.patience = 0;
        return policy;
    }
    if (name == "seed") {
        policy.options = placement::DirectoryOptions::seed();
        return policy;
    }
    const auto mode = placement::parse_mode(name);
    if (!mode || *mode == placement::Mode::automatic) {
        std::string known;
        for (const std::string &each : policy_names()) known += (known.empty() ? "" : ", ") + each;
        return Status(Code::invalid_argument, "unknown policy '" + name.substr(0, 80) + "'")
            .with_hint("one of: " + known);
    }
    policy.options.mode = *mode;
    return policy;
}

Result<MembershipChange> parse_change(const std::string &text) {
    using Kind = MembershipChange::Kind;
    const Status wrong = Status(Code::invalid_argument, "'" + text.substr(0, 80) + "' is no change of members")
                             .with_hint("KIND@COUNT[:NODE[:WEIGHT]], KIND of join, die, restart, replace, reweigh");
    constexpr std::string_view kKinds[] = {"join", "die", "restart", "replace", "reweigh"};
    const size_t at = text.find('@');
    if (at == std::string::npos) return wrong;
    const auto kind = std::ranges::find(kKinds, text.substr(0, at));
    if (kind == std::end(kKinds)) return wrong;
    MembershipChange change{static_cast<Kind>(kind - std::begin(kKinds)), 0, 0, 4};
    std::istringstream rest(text.substr(at + 1));
    size_t place = 0;
    for (std::string word; std::getline(rest, word, ':'); ++place) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size() || place > 2) return wrong;
        if (place > 0 && value > 1'000'000) return wrong;
        if (place == 0) change.after_statements = value;
        if (place == 1) change.node = static_cast<uint32_t>(value);
        if (place == 2) change.weight = std::max<uint32_t>(1, static_cast<uint32_t>(value));
    }
    if (place == 0 || (change.kind != Kind::join && place < 2)) return wrong;
    return change;
}

Status run_command(const SimCommand &command, std::ostream &out) {
    if (!command.write_trace.empty()) return write_statements(command);
    std::vector<Policy> policies;
    for (const std::string &name : command.policies) {
        ROOST_ASSIGN_OR_RETURN(Policy policy, policy_named(name, command.placement));
        policies.push_back(std::move(policy));
    }
    if (policies.empty() || command.in_flight.empty() || command.pool.weights.empty()) {
        return Status(Code::invalid_argument, "there is nothing to run");
    }
    ROOST_RETURN_IF_ERROR(workload_of(command).status());
    print_row(out, {std::begin(kColumns), std::end(kColumns)}, command.markdown);
    if (command.markdown) print_row(out, std::vector<std::string>(std::size(kColumns), "---"), true);
    for (const uint32_t in_flight : command.in_flight) {
        for (const Policy &policy : policies) {
            ROOST_ASSIGN_OR_RETURN(const auto workload, workload_of(command));
            RunPlan plan = command.plan;
            plan.in_flight_per_node = in_flight;
            if (!command.trace.empty()) plan.statements = UINT64_MAX / 2;
            const RunResult result = run(command.pool, policy.options, *workload, plan);
            print_row(out, cells(command.trace.empty() ? in_flight : 0, policy.name, result), command.markdown);
            print_moves(out, policy.name, result);
        }
        if (!command.trace.empty()) break;  // it has its own pace
    }
    return Status();
}

}  // namespace roost::sim
