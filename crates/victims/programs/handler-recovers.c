/* Handles a fault and goes on, several times, as some run-time systems do; then leaves. */
#include "gate.h"
static sigjmp_buf back;
static void handler(int signal) { (void)signal; siglongjmp(back, 1); }
int main(int argc, char **argv) {
    gate();
    signal(SIGSEGV, handler);
    int times = argc > 1 ? atoi(argv[1]) : 3;
    for (volatile int i = 0; i < times; i++)
        if (!sigsetjmp(back, 1)) *(volatile int *)8 = 1;
    return NORMAL;
}
