#include "app/process_wall.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/wall.h"

namespace roost::app {
namespace {

// The kernel's interface (linux/landlock.h), written out: Debian 12's header ends with ABI 2.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1, kNetPort = 2;

struct RulesetAttr {
    uint64_t handled_access_fs = 0;
    uint64_t handled_access_net = 0;
    uint64_t scoped = 0;
};
struct __attribute__((packed)) PathBeneathAttr {
    uint64_t allowed_access = 0;
    int32_t parent_fd = -1;
};
struct NetPortAttr {
    uint64_t allowed_access = 0;
    uint64_t port = 0;
};

constexpr uint64_t bit(int n) { return uint64_t{1} << n; }
constexpr uint64_t kExecute = bit(0), kWriteFile = bit(1), kReadFile = bit(2), kReadDir = bit(3), kRemoveDir = bit(4),
                   kRemoveFile = bit(5), kMakeDir = bit(7), kMakeReg = bit(8), kRefer = bit(13), kTruncate = bit(14);
constexpr uint64_t kAbi1 = bit(13) - 1;  // the rights 0 to 12
constexpr uint64_t kBindTcp = bit(0), kConnectTcp = bit(1);
constexpr uint64_t kAbstractSockets = bit(0), kSignals = bit(1);

constexpr uint64_t kReads = kReadFile | kReadDir;
constexpr uint64_t kWrites = kReads | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kRefer | kTruncate;
constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;  // the rights that a file can be given

Status refused(const char *what, const std::string &about) {
    return Status(Code::io_error, std::string("the kernel refused ") + what + about + ": " + std::strerror(errno));
}

// A descriptor that is closed when it goes.
class Fd {
public:
    explicit Fd(int fd) : fd_(fd) {}
    ~Fd() {
        if (fd_ >= 0) ::close(fd_);
    }
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

Status allow_path(int ruleset, const std::string &path, uint64_t rights) {
    const Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (fd.get() < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return Status();
        return refused("to open ", path);
    }
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0) return refused("to look at ", path);
    PathBeneathAttr rule;
    rule.allowed_access = S_ISDIR(about.st_mode) ? rights : rights & kOfFiles;
    rule.parent_fd = fd.get();
    if (::syscall(kAddRule, ruleset, kPathBeneath, &rule, 0) != 0) return refused("a rule for ", path);
    return Status();
}

Status allow_port(int ruleset, uint16_t port) {
    const NetPortAttr rule{kConnectTcp, port};
    if (::syscall(kAddRule, ruleset, kNetPort, &rule, 0) != 0) return refused("a rule for port ", std::to_string(port));
    return Status();
}

}  // namespace

Result<ProcessWall> raise_process_wall(const ProcessWallOptions &options) {
    ProcessWall wall;
    if (!stands(Wall::process)) return wall;
    const long abi = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
    if (abi < 1) return wall;  // not in this kernel, or switched off
    wall.abi = static_cast<int>(abi);
    RulesetAttr handled;
    handled.handled_access_fs = kAbi1;
    if (abi >= 2) handled.handled_access_fs |= kRefer;
    if (abi >= 3) handled.handled_access_fs |= kTruncate;
    if (abi >= 4) handled.handled_access_net = kBindTcp | kConnectTcp;
    if (abi >= 6) handled.scoped = kAbstractSockets | kSignals;
    // Older kernels know a shorter struct.
    const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    const Fd ruleset(static_cast<int>(::syscall(kCreateRuleset, &handled, size, 0)));
    if (ruleset.get() < 0) return refused("a ruleset", "");
    for (const std::string &path : options.read_only) {
        ROOST_RETURN_IF_ERROR(allow_path(ruleset.get(), path, kReads & handled.handled_access_fs));
    }
    for (const std::string &path : options.read_write) {
        ROOST_RETURN_IF_ERROR(allow_path(ruleset.get(), path, kWrites & handled.handled_access_fs));
    }
    if (handled.handled_access_net != 0) {
        for (const uint16_t port : options.connect_ports) ROOST_RETURN_IF_ERROR(allow_port(ruleset.get(), port));
    }
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("to give up new privileges", "");
    if (::syscall(kRestrictSelf, ruleset.get(), 0) != 0) return refused("to raise the wall", "");
    wall.files = true;
    wall.ports = abi >= 4;
    wall.signals = abi >= 6;
    return wall;
}

}  // namespace roost::app
