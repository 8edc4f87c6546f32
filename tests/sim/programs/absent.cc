// Looks up a kernel that the image does not have, and launches it where that went well.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuCtxCreate_v2(void **, unsigned, int);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    std::ifstream file(argv[1], std::ios::binary);
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    void *context, *module, *function;
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, image.data())) return 3;
    int code = cuModuleGetFunction(&function, module, "no_such_kernel");
    printf("look-up %d\n", code);
    if (code == 0) printf("launch %d\n", cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr));
}
