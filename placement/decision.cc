#include "placement/decision.h"

#include <cstdio>

namespace roost::placement {
namespace {

constexpr std::string_view kModes[] = {"auto", "affinity", "segments", "least_loaded", "round_robin"};
constexpr std::string_view kOutcomeNames[kOutcomes] = {"claim",        "sticky_fresh", "sticky_stale", "overflow",
                                                       "owner",        "moved",        "pinned",       "no_refs",
                                                       "least_loaded", "round_robin",  "no_members"};

// "120.5 MiB"; "0 B".
std::string bytes_text(uint64_t bytes) {
    constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
    return text;
}

std::string number_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    return text;
}

}  // namespace

std::string_view mode_name(Mode mode) { return kModes[static_cast<size_t>(mode)]; }

std::optional<Mode> parse_mode(std::string_view name) {
    for (size_t i = 0; i < std::size(kModes); ++i) {
        if (kModes[i] == name) return static_cast<Mode>(i);
    }
    return std::nullopt;
}

std::string_view outcome_name(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

std::vector<Ask> asks_of(size_t candidates, size_t near, int64_t patience_us) {
    std::vector<Ask> asks;
    if (candidates > 1) {
        // Asked once, and patiently, a lone home has planned the statement when its memory comes.
        const bool patient = patience_us > 0 && near > 0 && near < candidates;
        for (size_t i = 0; i < near; ++i) {
            if (near > 1 || !patient) asks.push_back({i, 0});
        }
        if (patient) asks.push_back({0, patience_us});
        for (size_t i = near; i < candidates; ++i) asks.push_back({i, 0});
    }
    for (size_t i = 0; i < candidates; ++i) asks.push_back({i, Ask::kAsLongAsItTakes});
    return asks;
}

std::string candidate_text(const Candidate &candidate) {
    std::string text;
    const auto say = [&](uint64_t bytes, const char *what) {
        if (bytes > 0) text += (text.empty() ? "" : ", ") + bytes_text(bytes) + " " + what;
    };
    say(candidate.fresh_bytes, "warm");
    say(candidate.stale_bytes, "warm but written since");
    say(candidate.coming_bytes, "coming");
    say(candidate.moved_bytes, "its own by rank now");
    say(candidate.owned_bytes, "by rank");
    if (text.empty()) text = "cold";
    if (candidate.over_cap) {
        text += ", over its cap (" + number_text(candidate.load) + " > " + number_text(candidate.cap) + ")";
    }
    return text;
}

std::string reason_text(const Decision &decision, const std::function<std::string(const Uuid &)> &name) {
    std::string text(outcome_name(decision.outcome));
    if (decision.candidates.empty()) return text;
    const Candidate &winner = decision.candidates.front();
    text += ": " + name(winner.node);
    switch (decision.outcome) {
        case Outcome::claim:
            text +=
                winner.owned_bytes > 0 ? " owns it by rank, and nobody has it" : " has least to do, and nobody has it";
            break;
        case Outcome::sticky_fresh:
        case Outcome::sticky_stale:
            text += " has " + candidate_text(winner) + " of " + bytes_text(decision.bytes);
            break;
        case Outcome::overflow:
            text += " takes it too, because " + (decision.passed_over ? name(*decision.passed_over) : "its home") +
                    " is over its cap";
            break;
        case Outcome::owner:
            text += " owns " + bytes_text(winner.owned_bytes) + " of " + bytes_text(decision.bytes);
            break;
        case Outcome::moved:
            text += " owns it by rank since the members have changed, and takes it over";
            break;
        case Outcome::pinned:
            text += " holds the transaction";
            break;
        case Outcome::no_refs:
            text += " has least to do, and no table is read";
            break;
        case Outcome::by_load:
            text += " has least to do";
            break;
        case Outcome::by_turn:
            text += " is next";
            break;
        case Outcome::no_members:
            break;
    }
    return text;
}

}  // namespace roost::placement
