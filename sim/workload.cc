#include "sim/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <numeric>
#include <ostream>
#include <sstream>

namespace roost::sim {
namespace {

class Synthetic final : public Workload {
public:
    Synthetic(const WorkloadOptions &options, uint64_t seed)
        : options_(options),
          random_(seed),
          per_tenant_(std::max<uint32_t>(options.units / std::max(options.tenants, 1u), 1)),
          zipf_(per_tenant_, options.zipf) {
        options_.tenants = std::max(options_.tenants, 1u);
        for (uint32_t i = 0; i < options_.units; ++i) {
            // Box–Muller; the mean is kept.
            const double normal =
                std::sqrt(-2 * std::log(1 - random_.uniform())) * std::cos(2 * M_PI * random_.uniform());
            const double sigma = options_.size_spread;
            const double factor = sigma == 0 ? 1 : std::exp(sigma * normal - sigma * sigma / 2);
            bytes_.push_back(
                std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(options_.unit_bytes) * factor)));
        }
        // Which units are hot has nothing to do with their numbers.
        hot_.resize(options_.units);
        std::iota(hot_.begin(), hot_.end(), 0);
        for (size_t i = hot_.size(); i > 1; --i) std::swap(hot_[i - 1], hot_[random_.below(i)]);
    }

    const std::vector<uint64_t> &unit_bytes() const override { return bytes_; }

    bool next(SimStatement &statement) override {
        ++count_;
        statement.at_us = -1;
        statement.units.clear();
        statement.cpu_us = options_.cpu_us / 2 + random_.exponential(options_.cpu_us / 2);
        statement.writes = random_.uniform() < options_.write_share;
        if (options_.scan_every > 0 && count_ % options_.scan_every == 0) scanned_ = 0;
        // One statement in four while a scan is under way.
        if (options_.scan_every > 0 && scanned_ < options_.units && count_ % 4 == 0) {
            statement.writes = false;
            statement.units.push_back(scanned_++);
            return true;
        }
        const uint32_t tenant = busy_tenant();
        statement.units.push_back(draw(tenant));
        if (random_.uniform() < options_.join_share) {
            const uint32_t other = draw(tenant);
            if (other != statement.units[0]) statement.units.push_back(other);
        }
        return true;
    }

private:
    // Half of all statements come from one of them, another each 20,000 statements.
    uint32_t busy_tenant() {
        if (options_.tenants == 1) return 0;
        if (random_.uniform() < 0.5) return static_cast<uint32_t>(count_ / 20'000 % options_.tenants);
        return static_cast<uint32_t>(random_.below(options_.tenants));
    }
    uint32_t draw(uint32_t tenant) {
        return hot_[std::min<size_t>(tenant * per_tenant_ + zipf_.draw(random_), hot_.size() - 1)];
    }

    WorkloadOptions options_;
    Random random_;
    uint32_t per_tenant_;
    Zipf zipf_;
    std::vector<uint64_t> bytes_;
    std::vector<uint32_t> hot_;  // by rank
    uint64_t count_ = 0;
    uint32_t scanned_ = UINT32_MAX;
};

class Recorded final : public Workload {
public:
    const std::vector<uint64_t> &unit_bytes() const override { return bytes; }
    bool next(SimStatement &statement) override {
        if (at_ >= statements.size()) return false;
        statement = statements[at_++];
        return true;
    }
    std::vector<uint64_t> bytes;
    std::vector<SimStatement> statements;

private:
    size_t at_ = 0;
};

template <class T>
bool parse(std::string_view text, T &value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

bool parse_run(const std::vector<std::string> &words, Recorded &trace) {
    SimStatement run;
    if (words.size() != 5 || !parse(words[1], run.at_us) || !parse(words[3], run.cpu_us)) return false;
    if (words[2] != "r" && words[2] != "w") return false;
    if (!(run.at_us >= 0) || !(run.cpu_us >= 0) || !std::isfinite(run.at_us) || !std::isfinite(run.cpu_us))
        return false;
    run.writes = words[2] == "w";
    std::istringstream units(words[4]);
    for (std::string each; std::getline(units, each, ',');) {
        uint32_t unit = 0;
        if (!parse(each, unit) || unit >= trace.bytes.size()) return false;
        run.units.push_back(unit);
    }
    if (run.units.empty()) return false;
    trace.statements.push_back(std::move(run));
    return true;
}

bool parse_unit(const std::vector<std::string> &words, Recorded &trace) {
    uint64_t number = 0, bytes = 0;
    if (words.size() != 3 || !parse(words[1], number) || !parse(words[2], bytes)) return false;
    if (number != trace.bytes.size() || bytes == 0 || bytes > uint64_t{1} << 50) return false;
    trace.bytes.push_back(bytes);
    return true;
}

}  // namespace

std::unique_ptr<Workload> make_synthetic(const WorkloadOptions &options, uint64_t seed) {
    return std::make_unique<Synthetic>(options, seed);
}

Result<std::unique_ptr<Workload>> read_trace(std::istream &in) {
    auto trace = std::make_unique<Recorded>();
    uint64_t number = 0;
    bool begun = false;
    const auto wrong = [&](const char *what) {
        return Status(Code::invalid_argument, "line " + std::to_string(number) + " of the trace is not " + what);
    };
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        if (!begun) {
            if (line != "roost-trace 1") return wrong("'roost-trace 1'");
            begun = true;
            continue;
        }
        std::istringstream text(line);
        std::vector<std::string> words;
        for (std::string word; text >> word;) words.push_back(word);
        if (words.empty()) continue;
        const bool right =
            words[0] == "unit" ? parse_unit(words, *trace) : words[0] == "run" && parse_run(words, *trace);
        if (!right) return wrong("a unit or a run as sim/workload.h describes them");
    }
    if (!begun) return Status(Code::invalid_argument, "the trace is empty");
    // A recorder learns of a statement when it ends.
    std::ranges::stable_sort(trace->statements, {}, &SimStatement::at_us);
    return std::unique_ptr<Workload>(std::move(trace));
}

void write_trace(std::ostream &out, Workload &workload, uint64_t statements) {
    out << "roost-trace 1\n";
    for (size_t i = 0; i < workload.unit_bytes().size(); ++i)
        out << "unit " << i << ' ' << workload.unit_bytes()[i] << '\n';
    SimStatement statement;
    for (uint64_t i = 0; i < statements && workload.next(statement); ++i) {
        // Synthetic ones come as their clients are free; a trace has a pace: 1,000 a second.
        out << "run " << static_cast<uint64_t>(statement.at_us >= 0 ? statement.at_us : static_cast<double>(i) * 1e3)
            << (statement.writes ? " w " : " r ") << static_cast<uint64_t>(statement.cpu_us) << ' ';
        for (size_t k = 0; k < statement.units.size(); ++k) out << (k ? "," : "") << statement.units[k];
        out << '\n';
    }
}

}  // namespace roost::sim
