// Runs one fuzz target over the files of its corpus folder, so that what the fuzzer once found stays found.
// Usage: NAME_replay FOLDER. Fails when the folder is missing or empty: a replay of nothing proves nothing.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size_bytes);

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    std::error_code error;
    int count = 0;
    for (const auto &entry : std::filesystem::directory_iterator(argv[1], error)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        std::fprintf(stderr, "%s (%zu bytes)\n", entry.path().filename().c_str(), bytes.size());
        // Copied to a buffer of the exact size: a read past its end is then seen by the address sanitizer.
        const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
        LLVMFuzzerTestOneInput(exact.data(), exact.size());
        ++count;
    }
    if (count == 0) {
        std::fprintf(stderr, "%s: no corpus file\n", argv[1]);
        return 1;
    }
    std::printf("%d files replayed\n", count);
    return 0;
}
