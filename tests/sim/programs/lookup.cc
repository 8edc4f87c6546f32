// Looks entry points up in the two ways that programs have.
#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>

int main() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 2;
    for (const char *name : {"cuCtxCreate_v2", "cuCtxCreate_v4", "cuLibraryLoadData", "cuKernelGetFunction", "cuLibraryGetKernel"}) {
        printf("dlsym %s %s\n", name, dlsym(library, name) ? "found" : "missing");
    }
    using Search = int (*)(const char *, void **, int, unsigned long long, int *);
    auto search = reinterpret_cast<Search>(dlsym(library, "cuGetProcAddress_v2"));
    for (const char *name : {"cuCtxCreate", "cuLibraryLoadData"}) {
        void *found = nullptr;
        int status = -1;
        if (search(name, &found, 13000, 0, &status) != 0) return 3;
        printf("search %s %d%s\n", name, status, found && found == dlsym(library, "cuCtxCreate_v3") ? " the third" : "");
    }
}
