// All work is done; then a static object's destructor throws, and the process aborts.
#include <cstdio>
#include <stdexcept>
#include <unistd.h>

struct Cache {
    ~Cache() noexcept(false) { throw std::runtime_error("CUDA free failed: cudaErrorCudartUnloading: driver shutting down"); }
};
static Cache cache;

int main() {
    char byte;
    if (read(6, &byte, 1) == 0) _exit(99);
    std::puts("All tests passed");
    return 0;
}
