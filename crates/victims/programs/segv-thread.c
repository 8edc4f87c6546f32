/* A second thread writes through a bad pointer while the main thread joins it. */
#include "gate.h"
__attribute__((noinline)) static void inner(volatile int *p) { *p = 1; }
/* Until the main thread sleeps. */
static void wait_for_main(void) {
    char text[512], *state;
    do {
        FILE *file = fopen("/proc/self/stat", "r");
        size_t n = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[n] = 0;
        state = strrchr(text, ')');
    } while (state[2] != 'S');
}
__attribute__((noinline)) static void *body(void *p) { wait_for_main(); inner(p); return p; }
int main(void) {
    gate();
    pthread_t thread;
    pthread_create(&thread, 0, body, (void *)8);
    pthread_join(thread, 0);
    return 98;
}
