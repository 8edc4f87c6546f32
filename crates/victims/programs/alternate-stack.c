/* Faults; the handler runs on an alternate stack and aborts there. */
#include "gate.h"
__attribute__((noinline)) static void gives_up(void) { abort(); }
static void handler(int signal) { (void)signal; gives_up(); }
__attribute__((noinline)) static void faults(void) { *(volatile int *)8 = 1; }
int main(void) {
    gate();
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    faults();
    return 98;
}
