/* Stops and waits for somebody to continue it; then leaves. */
#include "gate.h"
int main(void) { gate(); raise(SIGSTOP); return NORMAL; }
