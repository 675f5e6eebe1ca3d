/* SPDX-License-Identifier: 0BSD
   A lock of idem.h for POSIX threads.

       static pthread_mutex_t mutex;
       static const idem_config config = { ..., .lock_ctx = &mutex,
                                     .lock = threads_lock,
                                     .unlock = threads_unlock };

       if (threads_init(&mutex) != 0)          // once, before idem_open
           return 1;

   It checks errors: a call from inside another call, which a plain mutex would
   make wait for ever, is refused with IDEM_E_LOCK.  A thread must not be
   cancelled in a call: it would keep the lock.  With -std=c99 define
   _POSIX_C_SOURCE 200809L first. */
#ifndef IDEM_THREADS_H
#define IDEM_THREADS_H

#include <pthread.h>

/* Returns 0, or an errno. */
static inline int threads_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int result = pthread_mutexattr_init(&attributes);

    if (result != 0)
        return result;
    result = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    if (result == 0)
        result = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result;
}

static inline int threads_lock(void *mutex)
{
    return pthread_mutex_lock((pthread_mutex_t *)mutex);
}

static inline void threads_unlock(void *mutex)
{
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

#endif /* IDEM_THREADS_H */
