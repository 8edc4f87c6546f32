/* A thread that is not the first becomes another program, which dies. */
#include "gate.h"
static char *self;
static void *body(void *unused) { execl(self, self, "again", (char *)0); return unused; }
int main(int argc, char **argv) {
    if (argc > 1) abort();
    gate();
    self = argv[0];
    pthread_t thread;
    pthread_create(&thread, 0, body, 0);
    for (;;) pause();
}
