/* Leaves with the status that its argument names, from a function of that name. */
#include "gate.h"
__attribute__((noinline)) static void leaves(int status) { exit(status); }
int main(int argc, char **argv) { gate(); leaves(argc > 1 ? atoi(argv[1]) : 0); return 98; }
