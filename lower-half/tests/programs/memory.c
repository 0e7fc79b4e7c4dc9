/* Memory: heaps, large blocks that grow, break, fixed and hinted places, segments, files, all of it where it belongs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static const char *place(const void *pointer) {
    uintptr_t at = (uintptr_t)pointer;
    if (getenv("NATIVE")) return "in place";
    return (at >= 0x550100000000 && at < 0x555500000000) || at < 0x2a0000000000 ? "in place" : "OUT OF PLACE";
}

/* A mapping of the lower half's, code, found by its address. */
static char *foreign(void) {
    char line[512], kind[8];
    unsigned long start = 0, found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%*x %7s", &start, kind) == 2 && start >= 0x7e0000000000 && !strcmp(kind, "r-xp") && strstr(line, ".so")) found = start;
    fclose(maps);
    return (char *)found;
}

/* Nothing that the application asks for lies over the lower half's memory, or takes it away; and no code where nobody sees its calls. */
static int keeps_apart(void) {
    if (getenv("NATIVE")) return 1;
    volatile char *code = foreign();
    if (!code) return 0;
    char first = *code;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    int refused = mmap((void *)code, 4096, PROT_READ, flags | MAP_FIXED, -1, 0) == MAP_FAILED && errno == ENOMEM;
    refused &= mmap((void *)code, 4096, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST;
    refused &= mmap((void *)(code - 4096), 8192, PROT_READ, flags | MAP_FIXED, -1, 0) == MAP_FAILED;
    refused &= munmap((void *)code, 4096) == 0 && *code == first;
    void *gate = (void *)0x550000000000;
    refused &= mmap(gate, 4096, PROT_READ, flags | MAP_FIXED, -1, 0) == MAP_FAILED && munmap(gate, 65536) == 0;
    void *far = (void *)0x600000000000;
    refused &= mmap(far, 4096, PROT_READ | PROT_EXEC, flags | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EACCES;
    refused &= mmap(far, 4096, PROT_READ, flags | MAP_FIXED, -1, 0) == far;
    refused &= mprotect(far, 4096, PROT_READ | PROT_EXEC) == -1 && errno == EACCES;
    void *elsewhere = mmap((char *)far + 8192, 4096, PROT_READ | PROT_EXEC, flags, -1, 0);
    refused &= elsewhere != MAP_FAILED && !strcmp(place(elsewhere), "in place");
    return refused && munmap(far, 4096) == 0;
}

int main(void) {
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    for (size_t size = 1 << 20; size <= (64u << 20); size *= 2) {
        block = realloc(block, size);
        if (block[size / 2 - 1] != (char)(size == 1 << 20 ? 1 : size >> 20) && size == 1 << 20) abort();
        memset(block, 3, size);
    }
    printf("realloc %s\n", place(block));
    free(block);
    void *end = sbrk(0);
    sbrk(100000);
    memset(end, 5, 100000);
    printf("break %s %ld\n", place(end), (long)((char *)sbrk(0) - (char *)end));
    sbrk(-100000);
    printf("break back %d\n", sbrk(0) == end);
    brk((char *)end + 12345);
    printf("break odd %ld\n", (long)((char *)sbrk(0) - (char *)end));

    char *map = mmap(NULL, 10 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("map %s aligned %d\n", place(map), (int)((uintptr_t)map % 4096));
    map[5 << 20] = 9;
    munmap(map + (1 << 20), 1 << 20);
    void *hinted = mmap(map + (1 << 20), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("hint %d\n", hinted == map + (1 << 20));
    void *taken = mmap(map, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("hint taken %s %d\n", place(taken), taken != map);
    void *fixed = mmap(map, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("fixed %d\n", fixed == map);
    printf("no replace %d\n", mmap(map, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    char *moved = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved[100] = 42;
    mmap(moved + (4 << 20), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved = mremap(moved, 4 << 20, 400 << 20, MREMAP_MAYMOVE);
    printf("mremap %s %d\n", place(moved), moved[100]);
    moved = mremap(moved, 400 << 20, 4096, 0);
    printf("mremap smaller %d\n", moved[100]);
    void *low = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    printf("low %d\n", (uintptr_t)low < 0x80000000);

    int id = shmget(IPC_PRIVATE, 3 << 20, IPC_CREAT | 0600);
    char *shared = shmat(id, NULL, 0);
    shared[1000] = 7;
    char *again = shmat(id, NULL, SHM_RDONLY);
    printf("shm %s %s %d\n", place(shared), place(again), again[1000]);
    printf("detach %d %d\n", shmdt(shared), shmdt(again));
    shmctl(id, IPC_RMID, NULL);

    int fd = open("/proc/self/exe", O_RDONLY);
    char *file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("file %s %.3s\n", place(file), file + 1);
    close(fd);
    printf("bad %d\n", mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    printf("bad file %d\n", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 999, 0) == MAP_FAILED && errno == EBADF);
    for (int i = 0; i < 2000; i++) {
        size_t size = (size_t)(i % 7 + 1) << 18;
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || strcmp(place(p), "in place")) abort();
        p[size - 1] = 1;
        munmap(p, size);
    }
    printf("apart %d\n", keeps_apart());
    printf("main %s stack %s\n", place((void *)main), place(&id));
    return 0;
}
