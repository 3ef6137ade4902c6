// How a node divides its memory: profiles, the slots of a ladder, the buckets of `auto`, and what a statement is to
// get. Pure functions of bytes; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace roost::admission {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Ladders have fixed slots and lend nothing; `automatic` ("auto") sizes each statement by its estimate.
enum class Profile : uint8_t { single, equal_2, decaying_2, decaying_3, automatic };
std::optional<Profile> parse_profile(std::string_view name);
std::string_view profile_name(Profile profile);
// Weights of the slots, largest first: {1}, {1,1}, {2,1}, {3,2,1}. Of `automatic`: none.
std::vector<uint32_t> ladder(Profile profile);

// Bytes set aside from the budget for the shared instances; never lent.
struct Lanes {
    uint64_t small_bytes = 0;   // budget / 12: statements estimated at XS or less
    uint64_t pinned_bytes = 0;  // budget / 12: sessions with an open transaction
};
Lanes lanes_of(uint64_t budget_bytes);

enum class Bucket : uint8_t { xs, s, m, l, xl };
std::string_view bucket_name(Bucket bucket);
// XS 1/12, S 1/6, M 1/3, L 1/2, XL 1 of the budget.
uint64_t bucket_bytes(Bucket bucket, uint64_t budget_bytes);
// The smallest bucket that holds the estimate; XL for all that is larger.
Bucket bucket_of(uint64_t estimate_bytes, uint64_t budget_bytes);

// What decides how large a statement's grant is.
struct SizingOptions {
    uint64_t budget_bytes = 0;
    uint64_t lendable_bytes = 0;           // the budget less the lanes: the most that anybody gets
    double max_bucket_fraction = 1.0 / 3;  // of the budget: the most that is required for one statement
    double floor_fraction = 0.5;           // of what is wanted: with less a statement waits
    uint64_t minimum_bytes = 64 * kMiB;
    // A thread needs room: a plain Parquet filter failed with 4 MiB a thread (16 in 64 MiB, 64 in 256 MiB).
    uint64_t thread_bytes = 8 * kMiB;
    uint32_t threads = 1;
};

struct Size {
    uint64_t want_bytes = 0;
    uint64_t floor_bytes = 0;  // with less the statement waits; ≤ want_bytes
};

// What a running statement or an idle instance must have at least: max(64 MiB, threads × thread_bytes).
uint64_t least_bytes(const SizingOptions &options);
// want = `wanted_bytes` between the least and the cap; floor = max(least, floor_fraction × want). 0 wanted: nothing is
// known, M.
Size size_of(const SizingOptions &options, uint64_t wanted_bytes);

}  // namespace roost::admission
