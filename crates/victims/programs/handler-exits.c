/* Faults; its handler makes a success of it. */
#include "gate.h"
static void handler(int signal) { (void)signal; _exit(NORMAL); }
__attribute__((noinline)) static void faults(void) { *(volatile int *)8 = 1; }
int main(void) { gate(); signal(SIGSEGV, handler); faults(); return 98; }
