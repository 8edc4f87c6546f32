/* Two threads fault at the same moment. */
#include "gate.h"
static pthread_barrier_t barrier;
static void *body(void *address) {
    pthread_barrier_wait(&barrier);
    *(volatile int *)address = 1;
    return 0;
}
int main(void) {
    gate();
    pthread_barrier_init(&barrier, 0, 2);
    pthread_t one, two;
    pthread_create(&one, 0, body, (void *)8);
    pthread_create(&two, 0, body, (void *)16);
    pthread_join(one, 0);
    pthread_join(two, 0);
    return 98;
}
