/* A child made by vfork dies; the parent takes note and leaves normally. */
#include "gate.h"
int main(void) {
    gate();
    pid_t pid = vfork();
    if (pid == 0) { *(volatile int *)8 = 1; _exit(97); }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? NORMAL : 98;
}
