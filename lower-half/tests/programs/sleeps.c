/* Sleeps that are longer than the time between two stops, with and without a place for what is left of them, and the registers
 * around them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    struct timespec time = {0, 20000000}, rest = {7, 7};
    for (int i = 0; i < 5; i++) {
        usleep(20000);
        nanosleep(&time, NULL);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &rest);
        long result = SYS_nanosleep;
        register long a asm("rdi") = (long)&time, b asm("rsi") = 0;
        __asm__ volatile("syscall" : "+a"(result), "+r"(a), "+r"(b) : : "rcx", "r11", "memory");
        if (result != 0 || a != (long)&time || b != 0) printf("nanosleep: %ld\n", result);
        result = SYS_clock_nanosleep;
        register long c asm("rdx") = (long)&time, d asm("r10") = 0;
        a = CLOCK_REALTIME, b = 0;
        __asm__ volatile("syscall" : "+a"(result), "+r"(a), "+r"(b), "+r"(c), "+r"(d) : : "rcx", "r11", "memory");
        if (result != 0 || a != CLOCK_REALTIME || b != 0 || c != (long)&time || d != 0) printf("clock_nanosleep: %ld\n", result);
    }
    printf("%ld.%09ld slept\n", (long)time.tv_sec, (long)time.tv_nsec);
    return 0;
}
