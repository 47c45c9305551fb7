# Threads that never touch a Python object.

cdef extern from *:
    """
    #include <pthread.h>
    #include <signal.h>
    /* Signals stay with the threads of Python: one that arrived here would wake nobody there. */
    static inline int cogwork_start(pthread_t* thread, void* (*run)(void*), void* state) {
        sigset_t all, before;
        int error;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(thread, NULL, run, state);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return error;
    }
    """
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int start_thread "cogwork_start" (pthread_t* thread, void* (*run)(void*) noexcept nogil, void* state) noexcept nogil
    int pthread_join(pthread_t thread, void** result) noexcept nogil
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes) noexcept nogil
    int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept nogil
    int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept nogil
    int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept nogil
    int pthread_cond_init(pthread_cond_t* condition, void* attributes) noexcept nogil
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) noexcept nogil
    int pthread_cond_signal(pthread_cond_t* condition) noexcept nogil
    int pthread_cond_destroy(pthread_cond_t* condition) noexcept nogil
