#include "sim/admission_report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/random.h"

namespace roost::sim {
namespace {

using End = AdmissionRecord::End;

struct Shape {
    std::string name;
    uint64_t estimate_bytes = 0, peak_bytes = 0, scan_bytes = 0;
    double cpu_us = 0;
};

double normal(Random &random) {
    // Box and Muller.
    return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * M_PI * random.uniform());
}

std::vector<Shape> make_shapes(const AdmissionNodeOptions &node, const AdmissionWorkload &workload, Random &random) {
    std::vector<Shape> shapes;
    const auto memory = static_cast<double>(node.memory_bytes);
    for (uint32_t i = 0; i < std::max(1U, workload.shapes); ++i) {
        const double peak = std::clamp(memory * workload.peak_median * std::exp(workload.peak_spread * normal(random)),
                                       1e6, memory / 2);
        const double factor = workload.estimate_factor * std::exp(workload.estimate_spread * normal(random));
        Shape shape;
        shape.name = "shape " + std::to_string(i);
        shape.peak_bytes = static_cast<uint64_t>(peak);
        shape.estimate_bytes = static_cast<uint64_t>(std::min(peak * factor, 1e18));
        shape.scan_bytes = static_cast<uint64_t>(peak * (0.5 + 3 * random.uniform()));
        shape.cpu_us = workload.cpu_median_us * std::sqrt(peak / (memory * workload.peak_median)) * node.cpus *
                       (0.3 + random.uniform());
        shapes.push_back(shape);
    }
    return shapes;
}

struct Client {
    std::string user;
    Uuid session;
    int64_t next_at_us = 0;  // when it sends; INT64_MAX: its statement runs
};

std::vector<Client> make_clients(const AdmissionWorkload &workload, Random &random) {
    std::vector<Client> clients;
    for (uint32_t user = 0; user < workload.users; ++user) {
        const uint32_t count = workload.clients + (user == 0 ? workload.flood : 0);
        for (uint32_t i = 0; i < count; ++i) {
            Client client;
            client.user = "user " + std::to_string(user);
            if (random.uniform() < workload.session_share) {
                client.session.bytes[15] = static_cast<uint8_t>(clients.size() % 256);
                client.session.bytes[14] = static_cast<uint8_t>(clients.size() / 256 + 1);
            }
            clients.push_back(std::move(client));
        }
    }
    return clients;
}

AdmissionStatement next_statement(const Client &client, const std::vector<Shape> &shapes,
                                  const AdmissionWorkload &workload, Random &random) {
    AdmissionStatement statement;
    statement.user = client.user;
    if (random.uniform() < workload.small_share) {
        statement.is_small = true;
        statement.shape = "small";
        statement.estimate_bytes = 1 << 20;
        statement.peak_bytes = 1 << 18;
        statement.cpu_us = 2'000;
        return statement;
    }
    const Shape &shape = shapes[random.below(shapes.size())];
    statement.session = client.session;
    statement.shape = shape.name;
    statement.estimate_bytes = shape.estimate_bytes;
    statement.scan_bytes = shape.scan_bytes;
    // The same text does not see the same data each time.
    statement.peak_bytes =
        static_cast<uint64_t>(static_cast<double>(shape.peak_bytes) * (0.8 + 0.2 * random.uniform()));
    statement.cpu_us = shape.cpu_us * (0.8 + 0.4 * random.uniform());
    return statement;
}

double quantile(std::vector<double> &values, double q) {
    if (values.empty()) return 0;
    const auto at = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
    return values[at];
}

double mean(const std::vector<double> &values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double jain(const std::map<std::string, uint64_t> &done) {
    double sum = 0, squares = 0;
    for (const auto &[user, count] : done) {
        sum += static_cast<double>(count);
        squares += static_cast<double>(count) * static_cast<double>(count);
    }
    return squares == 0 ? 1 : sum * sum / (squares * static_cast<double>(done.size()));
}

void count(AdmissionResult &result, const AdmissionRecord &record) {
    result.done += record.end == End::done ? 1 : 0;
    result.timed_out += record.end == End::timed_out ? 1 : 0;
    result.out_of_memory += record.end == End::out_of_memory ? 1 : 0;
    result.killed += record.end == End::killed ? 1 : 0;
    result.spilled += record.spilled ? 1 : 0;
    result.small += record.statement.is_small ? 1 : 0;
}

AdmissionResult summarise(const AdmissionNode &node, int64_t took_us, const std::string &left_out) {
    AdmissionResult result;
    std::vector<double> waits, small_waits, first_waits, other_waits, first_ratio, later_ratio;
    std::map<std::string, uint64_t> done, seen;
    const uint64_t xs_bytes =
        node.records().empty() ? 0 : admission::bucket_bytes(admission::Bucket::xs, node.budget_bytes());
    uint64_t small_outside = 0, large_done = 0;
    for (const AdmissionRecord &record : node.records()) {
        if (record.end == End::none) continue;
        count(result, record);
        const AdmissionStatement &spec = record.statement;
        const auto wait_us = static_cast<double>(record.wait_us());
        if (spec.user != left_out) done[spec.user] += record.end == End::done ? 1 : 0;
        if (spec.is_small) {
            small_waits.push_back(wait_us);
            small_outside += record.in_lane ? 0 : 1;
            continue;
        }
        waits.push_back(wait_us);
        large_done += record.end == End::done ? 1 : 0;
        (spec.user == node.records().front().statement.user ? first_waits : other_waits).push_back(wait_us);
        if (spec.peak_bytes >= xs_bytes && record.granted_bytes > 0 && record.end == End::done) {
            const double ratio = static_cast<double>(record.granted_bytes) / static_cast<double>(spec.peak_bytes);
            (seen[spec.shape]++ == 0 ? first_ratio : later_ratio).push_back(ratio);
        }
    }
    result.done_per_minute = static_cast<double>(large_done) / (static_cast<double>(took_us) / 60e6);
    result.wait_mean_us = mean(waits);
    result.wait_p50_us = quantile(waits, 0.5);
    result.wait_p99_us = quantile(waits, 0.99);
    result.small_wait_p99_us = quantile(small_waits, 0.99);
    result.small_outside =
        small_waits.empty() ? 0 : static_cast<double>(small_outside) / static_cast<double>(small_waits.size());
    result.first_user_wait_us = mean(first_waits);
    result.others_wait_us = mean(other_waits);
    result.fairness = jain(done);
    result.reserved_to_peak_first = quantile(first_ratio, 0.5);
    result.reserved_to_peak_later = quantile(later_ratio, 0.5);
    result.totals = node.totals();
    return result;
}

}  // namespace

AdmissionResult run_admission(const AdmissionNodeOptions &options, const AdmissionWorkload &workload) {
    AdmissionNode node(options);
    Random random(options.seed);
    const std::vector<Shape> shapes = make_shapes(options, workload, random);
    std::vector<Client> clients = make_clients(workload, random);
    std::unordered_map<size_t, size_t> client_of;  // statement → client
    const int64_t since_us = node.now_us();
    for (Client &client : clients) {
        client.next_at_us = since_us + static_cast<int64_t>(random.exponential(workload.think_us));
    }
    while (node.now_us() - since_us < workload.duration_us) {
        for (size_t i = 0; i < clients.size(); ++i) {
            if (clients[i].next_at_us > node.now_us()) continue;
            clients[i].next_at_us = INT64_MAX;
            client_of[node.submit(next_statement(clients[i], shapes, workload, random))] = i;
        }
        node.step();
        for (const size_t number : node.take_ended()) {
            clients[client_of.at(number)].next_at_us =
                node.now_us() + static_cast<int64_t>(random.exponential(workload.think_us));
        }
    }
    return summarise(node, workload.duration_us, workload.flood > 0 ? "user 0" : "");
}

AdmissionResult run_admission(const AdmissionNodeOptions &options, const std::vector<AdmissionArrival> &trace) {
    AdmissionNode node(options);
    const int64_t since_us = node.now_us();
    size_t next = 0;
    while (next < trace.size() || node.live() > 0) {
        while (next < trace.size() && since_us + trace[next].at_us <= node.now_us())
            node.submit(trace[next++].statement);
        node.step();
        node.take_ended();
    }
    return summarise(node, std::max<int64_t>(1, node.now_us() - since_us), "");
}

Result<std::vector<AdmissionArrival>> read_admission_trace(std::istream &in) {
    std::vector<AdmissionArrival> out;
    bool has_header = false;
    size_t number = 0;
    const auto wrong = [&number](const std::string &what) {
        return Status(Code::invalid_argument, "line " + std::to_string(number) + ": " + what);
    };
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string word, size, rest;
        words >> word;
        if (!has_header) {
            if (line != "roost-admission-trace 1") return wrong("the first line is to be 'roost-admission-trace 1'");
            has_header = true;
            continue;
        }
        AdmissionArrival arrival;
        AdmissionStatement &each = arrival.statement;
        words >> arrival.at_us >> each.user >> each.shape >> each.estimate_bytes >> each.peak_bytes >>
            each.scan_bytes >> each.cpu_us >> size;
        if (word != "run" || words.fail() || words >> rest || (size != "large" && size != "small")) {
            return wrong("'run AT_US USER SHAPE ESTIMATE_BYTES PEAK_BYTES SCAN_BYTES CPU_US large|small' is expected");
        }
        const int64_t last_us = out.empty() ? 0 : out.back().at_us;
        if (arrival.at_us < last_us) return wrong("it is earlier than the line before");
        if (!(each.cpu_us > 0) || each.cpu_us > 1e15) return wrong("CPU_US is out of range");
        each.is_small = size == "small";
        out.push_back(std::move(arrival));
    }
    if (!has_header) return wrong("the first line is to be 'roost-admission-trace 1'");
    return out;
}

namespace {

std::string fixed(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.*f", digits, value);
    return text;
}

const std::vector<std::string> kColumns = {
    "profile",  "done/min",           "wait mean s", "p50 s",     "p99 s",  "first user s", "others s",
    "fairness", "small p99 ms",       "timed out",   "no memory", "killed", "spilled %",    "reserved ÷ peak",
    "then",     "oversubscribed MiB", "used max MiB"};

std::vector<std::string> row_of(const std::string &profile, const AdmissionResult &result) {
    const double all =
        static_cast<double>(std::max<uint64_t>(1, result.done + result.timed_out + result.out_of_memory +
                                                      result.killed - std::min(result.small, result.done)));
    return {profile,
            fixed(result.done_per_minute, 1),
            fixed(result.wait_mean_us / 1e6, 2),
            fixed(result.wait_p50_us / 1e6, 2),
            fixed(result.wait_p99_us / 1e6, 2),
            fixed(result.first_user_wait_us / 1e6, 2),
            fixed(result.others_wait_us / 1e6, 2),
            fixed(result.fairness, 3),
            fixed(result.small_wait_p99_us / 1e3, 1),
            std::to_string(result.timed_out),
            std::to_string(result.out_of_memory),
            std::to_string(result.killed),
            fixed(100 * static_cast<double>(result.spilled) / all, 1),
            fixed(result.reserved_to_peak_first, 2),
            fixed(result.reserved_to_peak_later, 2),
            std::to_string(result.totals.oversubscribed_bytes >> 20),
            std::to_string(result.totals.used_max_bytes >> 20)};
}

void print(const std::vector<std::vector<std::string>> &rows, bool markdown, std::ostream &out) {
    for (size_t r = 0; r < rows.size(); ++r) {
        for (size_t c = 0; c < rows[r].size(); ++c) {
            if (markdown) {
                out << (c == 0 ? "| " : " | ") << rows[r][c];
                continue;
            }
            size_t width = 0, shown = 0;
            for (const auto &row : rows) width = std::max(width, row[c].size());
            for (const char each : rows[r][c]) shown += (each & 0xC0) != 0x80 ? 1 : 0;  // characters, not bytes
            out << rows[r][c] << std::string(c + 1 < rows[r].size() ? width - shown + 2 : 0, ' ');
        }
        out << (markdown ? " |\n" : "\n");
        if (markdown && r == 0) {
            for (size_t c = 0; c < rows[r].size(); ++c) out << "| --- ";
            out << "|\n";
        }
    }
}

}  // namespace

Status run_admission_command(const AdmissionCommand &command, std::ostream &out) {
    std::vector<AdmissionArrival> trace;
    if (!command.trace.empty()) {
        std::ifstream in(command.trace);
        if (!in) return Status(Code::not_found, "can't read " + command.trace);
        ROOST_ASSIGN_OR_RETURN(trace, read_admission_trace(in));
    }
    std::vector<std::vector<std::string>> rows{kColumns};
    for (const std::string &name : command.profiles) {
        AdmissionNodeOptions node = command.node;
        const auto profile = admission::parse_profile(name);
        node.admits = name != "none";
        if (!profile && node.admits) {
            return Status(Code::invalid_argument, "there is no profile " + name)
                .with_hint("auto, single, equal_2, decaying_2, decaying_3, or none: no admission");
        }
        node.profile = profile.value_or(admission::Profile::automatic);
        rows.push_back(
            row_of(name, command.trace.empty() ? run_admission(node, command.workload) : run_admission(node, trace)));
    }
    print(rows, command.markdown, out);
    return Status();
}

}  // namespace roost::sim
