/* The first thread ends while another goes on, and that one dies. */
#include "gate.h"
static pthread_t first;
static void *body(void *unused) { pthread_join(first, 0); *(volatile int *)8 = 1; return unused; }
int main(void) {
    gate();
    first = pthread_self();
    pthread_t thread;
    pthread_create(&thread, 0, body, 0);
    pthread_exit(0);
}
