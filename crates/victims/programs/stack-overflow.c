/* Runs out of stack. */
#include "gate.h"
__attribute__((noinline)) static int deeper(int n) { volatile char block[4096]; block[0] = n; return deeper(n + 1) + block[0]; }
int main(void) { gate(); return deeper(0); }
