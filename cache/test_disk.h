// For tests: a disk in memory that fails and crashes as told. A Platter is the hardware, which outlives the process; a
// SimulatedDisk is one process' view of it. Thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/random.h"
#include "cache/disk.h"

namespace roost::cache::testing {

constexpr size_t kSectorBytes = 512;

class SimulatedFile;
class SimulatedDisk;

class Platter {
public:
    template <class F>
    void set(const F &change) {
        MutexLock lock(mutex_);
        change();
    }
    template <class F>
    auto with(const F &look) {
        MutexLock lock(mutex_);
        return look();
    }

    // --- faults, until taken back
    void fail_writes(Status status) {
        set([&] { write_fault_ = std::move(status); });
    }
    void fail_reads(Status status) {
        set([&] { read_fault_ = std::move(status); });
    }
    void fail_mount(Status status) {
        set([&] { mount_fault_ = std::move(status); });
    }
    void heal() {
        set([&] { write_fault_ = read_fault_ = mount_fault_ = Status(); });
    }
    void set_size(uint64_t bytes) {
        set([&] { size_bytes_ = bytes; });
    }
    void can_punch(bool can) {
        set([&] { can_punch_ = can; });
    }
    // Somebody removed the directory: files that are open go on, a probe and new files fail until the next mount.
    void remove_directory() {
        set([&] {
            files_.clear();
            ++directory_;
        });
    }
    // The write after so many more is torn, and everything after it fails: the process has been killed there.
    void kill_after(uint64_t writes, uint64_t seed) {
        set([&] {
            kill_after_ = writes;
            random_.emplace(seed);
        });
    }
    bool killed() {
        return with([&] { return killed_; });
    }
    uint64_t writes() {
        return with([&] { return writes_; });
    }
    uint64_t bytes() {
        return with([&] { return used(); });
    }
    // The process is gone. `power_lost`: of what was not synced, each sector was written or not.
    void crash(bool power_lost, uint64_t seed) {
        set([&] {
            SeededRandom random(seed);
            const double written = std::array{0.0, 0.5, 0.9}[random.below(3)];
            for (auto &[name, file] : files_) {
                if (power_lost) lose(*file, written, random);
                file->pending.clear();
                file->durable = file->content;
            }
            killed_ = false;
            kill_after_.reset();
            locked_ = false;
        });
    }
    // What was read or written is in the system's memory; so it is not at first.
    void keep_in_memory(bool kept) {
        set([&] { in_memory_ = kept; });
    }
    void flip_byte(const std::string &name, uint64_t offset) {
        set([&] { files_.at(name)->content.at(offset) ^= 0x40; });
    }
    uint64_t size_of(const std::string &name) {
        return with([&] { return files_.contains(name) ? files_[name]->content.size() : 0; });
    }

private:
    friend class SimulatedDisk;
    friend class SimulatedFile;
    struct Pending {
        uint64_t offset;
        std::string bytes;
    };
    struct Content {
        std::string content, durable;
        std::vector<Pending> pending;
    };
    static void apply(std::string &content, uint64_t offset, std::string_view bytes) {
        if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
        std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<int64_t>(offset));
    }
    static void lose(Content &file, double written, SeededRandom &random) {
        file.content = file.durable;
        for (const Pending &write : file.pending) {
            for (uint64_t at = 0; at < write.bytes.size();) {
                const uint64_t step =
                    std::min(write.bytes.size() - at, kSectorBytes - (write.offset + at) % kSectorBytes);
                if (random.chance(written)) apply(file.content, write.offset + at, write.bytes.substr(at, step));
                at += step;
            }
        }
    }
    uint64_t used() {
        uint64_t bytes = 0;
        for (const auto &[name, file] : files_) {
            for (size_t at = 0; at < file->content.size(); at += kSectorBytes) {
                const auto sector = std::string_view(file->content).substr(at, kSectorBytes);
                if (sector.find_first_not_of('\0') != std::string_view::npos) bytes += kSectorBytes;
            }
        }
        return bytes;
    }
    // What a write may do now; sets how much of it is done.
    Status admit(size_t &length) {
        if (killed_) return Status(Code::io_error, "the process is dead");
        ++writes_;
        if (!write_fault_.ok()) return write_fault_;
        if (kill_after_ && (*kill_after_)-- == 0) {
            killed_ = true;
            length = random_->below(length + 1);
        }
        return Status();
    }

    Mutex mutex_;
    std::map<std::string, std::shared_ptr<Content>> files_;
    Status write_fault_, read_fault_, mount_fault_;
    uint64_t size_bytes_ = UINT64_MAX;
    bool can_punch_ = true, killed_ = false, locked_ = false, in_memory_ = false;
    std::optional<uint64_t> kill_after_;
    std::optional<SeededRandom> random_;
    uint64_t writes_ = 0, directory_ = 0;
};

class SimulatedFile final : public DiskFile {
public:
    SimulatedFile(Platter &platter, std::shared_ptr<Platter::Content> file)
        : platter_(platter), file_(std::move(file)) {}
    Status read_at(uint64_t offset, char *buffer, size_t length) override {
        return platter_.with([&] {
            if (!platter_.read_fault_.ok()) return platter_.read_fault_;
            if (offset + length > file_->content.size()) return Status(Code::data_loss, "the end is missing");
            std::copy_n(file_->content.begin() + static_cast<int64_t>(offset), length, buffer);
            return Status();
        });
    }
    bool read_in_memory(uint64_t offset, char *buffer, size_t length) override {
        return platter_.with([&] {
            if (!platter_.in_memory_ || offset + length > file_->content.size()) return false;
            std::copy_n(file_->content.begin() + static_cast<int64_t>(offset), length, buffer);
            return true;
        });
    }
    Status write_at(uint64_t offset, std::string_view bytes) override {
        return platter_.with([&] {
            size_t length = bytes.size();
            Status status = platter_.admit(length);
            if (!status.ok()) return status;
            if (platter_.size_bytes_ != UINT64_MAX && platter_.used() + length > platter_.size_bytes_) {
                return Status(Code::resource_exhausted, "no space");
            }
            Platter::apply(file_->content, offset, bytes.substr(0, length));
            file_->pending.push_back({offset, std::string(bytes.substr(0, length))});
            return platter_.killed_ ? Status(Code::io_error, "killed") : Status();
        });
    }
    Status punch(uint64_t offset, uint64_t length) override {
        {
            const bool can = platter_.with([&] { return platter_.can_punch_; });
            if (!can) return Status(Code::unimplemented, "no holes here");
        }
        const uint64_t size = *size_bytes();
        if (offset >= size) return Status();
        return write_at(offset, std::string(std::min(length, size - offset), '\0'));
    }
    Result<uint64_t> size_bytes() override {
        return platter_.with([&] { return static_cast<uint64_t>(file_->content.size()); });
    }

private:
    Platter &platter_;
    const std::shared_ptr<Platter::Content> file_;
};

class SimulatedDisk final : public Disk {
public:
    explicit SimulatedDisk(Platter &platter) : platter_(platter) {}
    ~SimulatedDisk() override {
        if (mounted_) platter_.set([&] { platter_.locked_ = false; });
    }
    Status mount() override {
        return platter_.with([&] {
            if (!platter_.mount_fault_.ok()) return platter_.mount_fault_;
            if (platter_.locked_ && !mounted_) return Status(Code::failed_precondition, "in use");
            platter_.locked_ = mounted_ = true;
            directory_ = platter_.directory_;
            return Status();
        });
    }
    Result<std::unique_ptr<DiskFile>> open(const std::string &name) override {
        auto content = platter_.with([&] {
            auto &file = platter_.files_[name];
            if (!file) file = std::make_shared<Platter::Content>();
            return file;
        });
        return std::unique_ptr<DiskFile>(std::make_unique<SimulatedFile>(platter_, std::move(content)));
    }
    Result<std::string> read_whole(const std::string &name, size_t max_bytes) override {
        return platter_.with([&]() -> Result<std::string> {
            if (!platter_.read_fault_.ok()) return platter_.read_fault_;
            const auto file = platter_.files_.find(name);
            if (file == platter_.files_.end()) return Status(Code::not_found, "no " + name);
            if (file->second->content.size() > max_bytes) return Status(Code::data_loss, "too large");
            return file->second->content;
        });
    }
    Status replace(const std::string &name, std::string_view content) override {
        return platter_.with([&] {
            size_t length = content.size();
            ROOST_RETURN_IF_ERROR(platter_.admit(length));
            // Killed in the middle: either the old file or the new one.
            if (platter_.killed_ && platter_.random_->chance(0.5)) return Status(Code::io_error, "killed");
            auto file = std::make_shared<Platter::Content>();
            file->content = file->durable = content;
            platter_.files_[name] = std::move(file);
            return platter_.killed_ ? Status(Code::io_error, "killed") : Status();
        });
    }
    Status remove(const std::string &name) override {
        return platter_.with([&] {
            size_t length = 1;
            ROOST_RETURN_IF_ERROR(platter_.admit(length));
            if (platter_.killed_ && length == 0) return Status(Code::io_error, "killed");
            platter_.files_.erase(name);
            return Status();
        });
    }
    Result<uint64_t> free_bytes() override {
        return platter_.with([&]() -> Result<uint64_t> {
            if (mounted_ && directory_ != platter_.directory_) return Status(Code::not_found, "another directory");
            if (platter_.size_bytes_ == UINT64_MAX) return uint64_t{1} << 50;
            const uint64_t used = platter_.used();
            return platter_.size_bytes_ > used ? platter_.size_bytes_ - used : 0;
        });
    }
    Status probe() override {
        return platter_.with([&] {
            if (!mounted_ || directory_ != platter_.directory_) return Status(Code::not_found, "another directory");
            size_t length = 1;
            return platter_.admit(length);
        });
    }
    std::string description() const override { return "a simulated disk"; }

private:
    Platter &platter_;
    bool mounted_ = false;
    uint64_t directory_ = 0;
};

// What a file holds at a version: every version of every file differs.
inline std::string bytes_of(const std::string &path, const std::string &version, uint64_t offset, size_t length) {
    const uint64_t seed = std::hash<std::string>()(path + "\n" + version);
    std::string bytes(length, '\0');
    uint64_t word = 0;
    for (size_t i = 0; i < length; ++i) {
        const uint64_t at = offset + i;
        if (i == 0 || at % 8 == 0) word = SeededRandom(seed + at / 8).next();
        bytes[i] = static_cast<char>(word >> (at % 8 * 8));
    }
    return bytes;
}

}  // namespace roost::cache::testing
