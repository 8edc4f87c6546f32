/* A stand-in for the driver that does nothing but call what it is given, like a driver calls an image's host code. */
int cuLaunchKernel(int (*callback)(void *, void *, long, void *), void *parameters) {
    int answer = callback(0, 0, 0, parameters);
    return answer + 1;
}
