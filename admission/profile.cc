#include "admission/profile.h"

#include <algorithm>
#include <array>

namespace roost::admission {
namespace {

// A share of the budget for each of the two shared instances, as one over this.
constexpr uint64_t kLaneShare = 12;

struct ProfileInfo {
    Profile profile;
    std::string_view name;
};
constexpr std::array<ProfileInfo, 5> kProfiles = {{
    {Profile::single, "single"},
    {Profile::equal_2, "equal_2"},
    {Profile::decaying_2, "decaying_2"},
    {Profile::decaying_3, "decaying_3"},
    {Profile::automatic, "auto"},
}};

struct BucketInfo {
    std::string_view name;
    uint64_t over;  // a bucket is the budget ÷ over
};
constexpr std::array<BucketInfo, 5> kBuckets = {{{"XS", 12}, {"S", 6}, {"M", 3}, {"L", 2}, {"XL", 1}}};

}  // namespace

std::optional<Profile> parse_profile(std::string_view name) {
    for (const ProfileInfo &info : kProfiles) {
        if (info.name == name) return info.profile;
    }
    return std::nullopt;
}

std::string_view profile_name(Profile profile) {
    for (const ProfileInfo &info : kProfiles) {
        if (info.profile == profile) return info.name;
    }
    return "unknown";
}

std::vector<uint32_t> ladder(Profile profile) {
    switch (profile) {
        case Profile::single:
            return {1};
        case Profile::equal_2:
            return {1, 1};
        case Profile::decaying_2:
            return {2, 1};
        case Profile::decaying_3:
            return {3, 2, 1};
        case Profile::automatic:
            break;
    }
    return {};
}

Lanes lanes_of(uint64_t budget_bytes) { return {budget_bytes / kLaneShare, budget_bytes / kLaneShare}; }

std::string_view bucket_name(Bucket bucket) { return kBuckets[static_cast<size_t>(bucket)].name; }

uint64_t bucket_bytes(Bucket bucket, uint64_t budget_bytes) {
    return budget_bytes / kBuckets[static_cast<size_t>(bucket)].over;
}

Bucket bucket_of(uint64_t estimate_bytes, uint64_t budget_bytes) {
    for (size_t i = 0; i + 1 < kBuckets.size(); ++i) {
        if (estimate_bytes <= budget_bytes / kBuckets[i].over) return static_cast<Bucket>(i);
    }
    return Bucket::xl;
}

uint64_t least_bytes(const SizingOptions &options) {
    return std::min(options.lendable_bytes, std::max(options.minimum_bytes, options.thread_bytes * options.threads));
}

Size size_of(const SizingOptions &options, uint64_t wanted_bytes) {
    if (wanted_bytes == 0) wanted_bytes = bucket_bytes(Bucket::m, options.budget_bytes);
    // A third of 12 GiB is to be 4 GiB and not a byte less.
    const auto fraction = static_cast<uint64_t>(static_cast<long double>(options.budget_bytes) *
                                                    std::clamp<long double>(options.max_bucket_fraction, 0, 1) +
                                                0.5L);
    const uint64_t least = least_bytes(options);
    const uint64_t most = std::clamp(fraction, least, options.lendable_bytes);
    const uint64_t want = std::clamp(wanted_bytes, least, most);
    const auto part = static_cast<uint64_t>(static_cast<long double>(want) * options.floor_fraction);
    return {want, std::clamp(part, least, want)};
}

}  // namespace roost::admission
