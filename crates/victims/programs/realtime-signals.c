/* Cancels threads, changes its user id in all of them and takes real-time signals: all by signals 32 and up. */
#include "gate.h"
static volatile int taken;
static void handler(int signal) { (void)signal; taken++; }
static void *idle(void *unused) { for (;;) pause(); return unused; }
int main(void) {
    gate();
    signal(SIGRTMIN, handler);
    signal(SIGRTMAX, handler);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, idle, 0);
        if (setuid(getuid())) return 98;
        raise(SIGRTMIN);
        raise(SIGRTMAX);
        pthread_cancel(thread);
        pthread_join(thread, 0);
    }
    return taken == 40 ? NORMAL : 98;
}
