/* As many threads as asked for (64), half of them busy; one of them dies. */
#include "gate.h"
static volatile int up;
static void *body(void *n) {
    __sync_fetch_and_add(&up, 1);
    if ((long)n % 2) for (;;) pause();
    for (volatile long spin = 0;; spin++) if (spin % 1024 == 0) sched_yield();
    return 0;
}
int main(int argc, char **argv) {
    gate();
    long threads = argc > 1 ? atol(argv[1]) : 64;
    for (long n = 1; n < threads; n++) {
        pthread_t thread;
        pthread_create(&thread, 0, body, (void *)n);
    }
    while (up < threads - 1) sched_yield();
    *(volatile int *)8 = 1;
    return 98;
}
