// Loaded before a process of the pool by tests (LD_PRELOAD, see disk_faults.py): reads and writes of files in the caches of its
// nodes (nodes/N/cache) fail as a page of memory says that the test shares with it. Nothing else of the process is touched.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int32_t read_errno, write_errno;  // 0: none
    volatile int32_t per_mille;                // of the calls that fail
    volatile int32_t delay_us;                 // of each call
    volatile uint32_t read_faults, write_faults;
};
static struct control none, *control = &none;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("DISK_FAULTS_CONTROL");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) control = page;
}

static int of_the_cache(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 2);
    if (length <= 0) return 0;
    path[length] = '/';  // a directory itself counts
    path[length + 1] = 0;
    const char *node = strstr(path, "/nodes/");  // of a pool: DIR/nodes/N/cache
    return node != NULL && strstr(node, "/cache/") != NULL;
}

// The error of this call, or 0. Waits as long as the disk takes.
static int fault(int fd, int wanted, volatile uint32_t *count) {
    if ((wanted == 0 && control->delay_us == 0) || !of_the_cache(fd)) return 0;
    if (control->delay_us > 0) {
        const struct timespec wait = {control->delay_us / 1000000, control->delay_us % 1000000 * 1000L};
        nanosleep(&wait, NULL);
    }
    static __thread unsigned seed;
    if (seed == 0) seed = (unsigned)(uintptr_t)&seed | 1;
    if (wanted == 0 || rand_r(&seed) % 1000 >= control->per_mille) return 0;
    __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    return wanted;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pread(int fd, void *buffer, size_t length, off_t offset) {
    const int error = fault(fd, control->read_errno, &control->read_faults);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return REAL(pread)(fd, buffer, length, offset);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    const int error = fault(fd, control->read_errno, &control->read_faults);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return REAL(preadv2)(fd, parts, count, offset, flags);
}

ssize_t pwrite(int fd, const void *buffer, size_t length, off_t offset) {
    const int error = fault(fd, control->write_errno, &control->write_faults);
    if (error != 0) {
        // As a disk does that fails in the middle: a part may be there.
        if (length > 512) (void)!REAL(pwrite)(fd, buffer, length / 3, offset);
        errno = error;
        return -1;
    }
    return REAL(pwrite)(fd, buffer, length, offset);
}

int openat(int directory, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    const int error = flags & O_CREAT ? fault(directory, control->write_errno, &control->write_faults) : 0;
    if (error != 0) {
        errno = error;
        return -1;
    }
    return REAL(openat)(directory, path, flags, mode);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    const int error = fault(fd, control->write_errno, &control->write_faults);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return REAL(fallocate)(fd, mode, offset, length);
}
