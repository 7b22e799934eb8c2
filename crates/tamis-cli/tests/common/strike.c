/* Loaded before the C library: call number STRIKE_AT that opens, writes, syncs, renames or removes a file does not happen.
   The process is killed in its place, or, where STRIKE_BY is the number of an error, told of that error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static int strikes(void) {
  static int calls;
  const char *at = getenv("STRIKE_AT"), *by = getenv("STRIKE_BY");
  if (!at || __sync_add_and_fetch(&calls, 1) != atoi(at)) return 0;
  if (!by) kill(getpid(), SIGKILL);
  errno = atoi(by);
  return 1;
}

#define CALL(type, name, parameters, arguments)                                \
  type name parameters {                                                       \
    if (strikes()) return -1;                                                  \
    return ((type(*) parameters)dlsym(RTLD_NEXT, #name))arguments;             \
  }

CALL(ssize_t, write, (int file, const void *bytes, size_t len), (file, bytes, len))
CALL(int, fsync, (int file), (file))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, unlink, (const char *path), (path))

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (strikes()) return -1;
  return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}
