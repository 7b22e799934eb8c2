/* Loaded before the C library: the system has no thread to give. */
#include <errno.h>
#include <pthread.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  (void)thread, (void)attributes, (void)start, (void)argument;
  return EAGAIN;
}
