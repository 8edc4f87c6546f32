/* Ignores what asks it to end, and goes on for ever. */
#include "gate.h"
int main(void) {
    signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); signal(SIGHUP, SIG_IGN);
    gate();
    for (;;) pause();
}
