// A wall clock that a test sets: what a process reads is the machine's clock plus the nanoseconds in the file of SHIFTED_CLOCK.
//
// Loaded with LD_PRELOAD. Deadlines that are given to the kernel in wall time are moved back by as much, or a wait of a second
// would end when the test's hour is over. Clocks that only go forward (CLOCK_MONOTONIC) are left alone, as a real jump leaves them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
// A deadline with fewer seconds is not wall time, but the time since the machine was started.
#define WALL 1000000000LL

static volatile int64_t none = 0;
static volatile int64_t *shift = &none;

__attribute__((constructor)) static void open_shift(void) {
  const char *path = getenv("SHIFTED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found != MAP_FAILED) shift = found;
}

static struct timespec moved(struct timespec at, int64_t by) {
  int64_t all = at.tv_sec * SECOND + at.tv_nsec + by;
  return (struct timespec){all / SECOND, all % SECOND};
}

int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, id, at);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) *at = moved(*at, *shift);
  return failed;
}

int timespec_get(struct timespec *at, int base) {
  return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, at) ? base : 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

static struct timespec of_the_kernel(const struct timespec *deadline) {
  return deadline->tv_sec < WALL ? *deadline : moved(*deadline, -*shift);
}

#define NEXT(name) \
  static __typeof__(&name) next; \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline) {
  NEXT(pthread_cond_timedwait);
  struct timespec real = of_the_kernel(deadline);
  return next(cond, mutex, &real);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline) {
  NEXT(pthread_mutex_timedlock);
  struct timespec real = of_the_kernel(deadline);
  return next(mutex, &real);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
  NEXT(sem_timedwait);
  struct timespec real = of_the_kernel(deadline);
  return next(semaphore, &real);
}
