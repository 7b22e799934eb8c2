/* Loaded before the C library: call number STRIKE_AT by which files are opened, read, written, locked, synced, renamed,
   linked or removed, or a thread is started, does not happen. The process is killed in its place, or, where STRIKE_BY is the
   number of an error, told of that error. STRIKE_LOG is a file to which the names of most of these calls are added. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static int strikes(void) {
  static int calls;
  const char *at = getenv("STRIKE_AT"), *by = getenv("STRIKE_BY");
  if (!at || __sync_add_and_fetch(&calls, 1) != atoi(at)) return 0;
  if (!by) kill(getpid(), SIGKILL);
  errno = atoi(by);
  return 1;
}

/* Not by the calls below, which would be told in turn. */
static void tell(const char *name) {
  const char *log = getenv("STRIKE_LOG");
  if (!log) return;
  int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT, 0600);
  syscall(SYS_write, file, name, strlen(name));
  syscall(SYS_close, file);
}

#define CALL(type, name, parameters, arguments)                                \
  type name parameters {                                                       \
    tell(#name "\n");                                                          \
    if (strikes()) return -1;                                                  \
    return ((type(*) parameters)dlsym(RTLD_NEXT, #name))arguments;             \
  }

CALL(ssize_t, read, (int file, void *bytes, size_t len), (file, bytes, len))
CALL(ssize_t, write, (int file, const void *bytes, size_t len), (file, bytes, len))
CALL(off64_t, lseek64, (int file, off64_t to, int from), (file, to, from))
CALL(int, ftruncate64, (int file, off64_t len), (file, len))
CALL(int, fsync, (int file), (file))
CALL(int, fchmod, (int file, mode_t mode), (file, mode))
CALL(int, fchown, (int file, uid_t user, gid_t group), (file, user, group))
CALL(int, flock, (int file, int how), (file, how))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
CALL(int, unlink, (const char *path), (path))

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  if (strikes()) return EAGAIN;
  return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create"))(
      thread, attributes, start, argument);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (strikes()) return -1;
  return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}
