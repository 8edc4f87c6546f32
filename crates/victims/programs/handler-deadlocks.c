/* Smashes the heap's top; malloc aborts; the handler allocates and waits for malloc's own lock for ever. */
#include "gate.h"
static void handler(int signal) {
    FILE *file = fopen("/dev/null", "w");
    if (file) { fprintf(file, "signal %d\n", signal); fclose(file); }
    _exit(1);
}
static void *idle(void *unused) { for (;;) pause(); return unused; }
int main(void) {
    gate();
    signal(SIGABRT, handler);
    pthread_t thread;
    pthread_create(&thread, 0, idle, 0);
    volatile char *block = malloc(24);
    for (int i = 0; i < 24 + 16; i++) block[i] = 0x41;
    void *volatile next = malloc(0x2000);
    (void)next;
    return 98;
}
