/* Says that it passed; then a destructor waits for a mutex that a living thread holds. */
#include "gate.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int held;
static void *holds(void *unused) { pthread_mutex_lock(&mutex); held = 1; for (;;) pause(); return unused; }
__attribute__((destructor)) static void finish(void) { pthread_mutex_lock(&mutex); }
int main(void) {
    gate();
    pthread_t thread;
    pthread_create(&thread, 0, holds, 0);
    while (!held) sched_yield();
    fputs("PASS\n", stderr);
    return 0;
}
