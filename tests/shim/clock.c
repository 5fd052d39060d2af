/* A wall clock that a test can step.
 *
 * Preloaded into a process, this adds an offset in microseconds to what gettimeofday, time and
 * clock_gettime (of the wall clocks) say. The offset is the first eight bytes of the file that
 * SLUICEGATE_CLOCK_OFFSET names, in the machine's byte order; the file is mapped, so that a change
 * acts at once. Monotonic clocks, and timers of the kernel, stay as they are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *offset_us;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void)
{
    real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("SLUICEGATE_CLOCK_OFFSET");
    if (path == NULL)
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        /* A test that believes it steps the clock must not go on without. */
        perror(path);
        abort();
    }
    close(file);
    offset_us = mapped;
}

/* Before the constructor has run, an allocator may ask for the time already: the kernel answers. */
static int kernel_time(clockid_t clock, struct timespec *out)
{
    if (real_clock_gettime != NULL)
        return real_clock_gettime(clock, out);
    return (int)syscall(SYS_clock_gettime, clock, out);
}

static int is_wall_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = kernel_time(clock, out);
    if (result != 0 || offset_us == NULL || !is_wall_clock(clock))
        return result;
    int64_t us = __atomic_load_n(offset_us, __ATOMIC_RELAXED);
    int64_t seconds = us / 1000000, ns = out->tv_nsec + us % 1000000 * 1000;
    if (ns < 0) {
        ns += 1000000000;
        seconds -= 1;
    } else if (ns >= 1000000000) {
        ns -= 1000000000;
        seconds += 1;
    }
    out->tv_sec += seconds;
    out->tv_nsec = ns;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    if (result == 0) {
        out->tv_sec = now.tv_sec;
        out->tv_usec = now.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
