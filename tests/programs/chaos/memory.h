/* Memory: how it is mapped, protected, shared and advised. */
#include "feature.h"
#include <pthread.h>
#include <setjmp.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#define CHAOS_PAGE 4096

static char *map_pages(size_t pages, int protection, int flags) {
    char *at = mmap(NULL, pages * CHAOS_PAGE, protection, flags | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
    return at;
}

/* Whether the kernel can read there (write(2) of a bad address fails and disturbs nobody). */
static int readable_page(const void *at) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    int readable = write(ends[1], at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return readable;
}

static char *shared_pages;
CARRIED(shared_anonymous_memory)
SET(shared_anonymous_memory) {
    shared_pages = map_pages(4, PROT_READ | PROT_WRITE, MAP_SHARED);
    trial_fill(shared_pages, 4 * CHAOS_PAGE, 31);
}
AFTER(shared_anonymous_memory) { CHECK(trial_differs(shared_pages, 4 * CHAOS_PAGE, 31) < 0, "contents"); }

static char *hidden_page;
CARRIED(page_that_cannot_be_read)
SET(page_that_cannot_be_read) {
    hidden_page = map_pages(1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    trial_fill(hidden_page, CHAOS_PAGE, 32);
    DOES(mprotect(hidden_page, CHAOS_PAGE, PROT_NONE));
}
AFTER(page_that_cannot_be_read) {
    CHECK(!readable_page(hidden_page), "it can be read");
    DOES(mprotect(hidden_page, CHAOS_PAGE, PROT_READ));
    CHECK(trial_differs(hidden_page, CHAOS_PAGE, 32) < 0, "contents");
}

static char *large_block;
CARRIED(large_block_partly_touched)
SET(large_block_partly_touched) {
    large_block = malloc(256 << 20);
    CHECK(large_block != NULL, "malloc");
    for (size_t at = 0; at < 256u << 20; at += 37 << 20) trial_fill(large_block + at, 1000, at);
}
AFTER(large_block_partly_touched) {
    for (size_t at = 0; at < 256u << 20; at += 37 << 20) CHECK(trial_differs(large_block + at, 1000, at) < 0, "at %zu", at);
    CHECK(large_block[5 << 20] == 0, "an untouched page");
    free(large_block);
}

static char *at_a_place;
CARRIED(mapping_at_a_chosen_address)
SET(mapping_at_a_chosen_address) {
    void *place = (void *)0x600000000000;
    at_a_place = mmap(place, 16 * CHAOS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(at_a_place == place, "%p: %s", (void *)at_a_place, strerror(errno));
    trial_fill(at_a_place, 16 * CHAOS_PAGE, 33);
}
AFTER(mapping_at_a_chosen_address) {
    CHECK(trial_differs(at_a_place, 16 * CHAOS_PAGE, 33) < 0, "contents");
    DOES(munmap(at_a_place, 16 * CHAOS_PAGE));
}

static char *reserved;
CARRIED(terabytes_reserved)
SET(terabytes_reserved) {
    reserved = mmap(NULL, (size_t)2 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(reserved != MAP_FAILED, "%s", strerror(errno));
    DOES(mprotect(reserved + ((size_t)1 << 40), CHAOS_PAGE, PROT_READ | PROT_WRITE));
    trial_fill(reserved + ((size_t)1 << 40), CHAOS_PAGE, 34);
}
AFTER(terabytes_reserved) {
    CHECK(trial_differs(reserved + ((size_t)1 << 40), CHAOS_PAGE, 34) < 0, "contents");
    CHECK(!readable_page(reserved), "the reservation can be read");
    DOES(mprotect(reserved, CHAOS_PAGE, PROT_READ | PROT_WRITE));
    reserved[5] = 1;
    DOES(munmap(reserved, (size_t)2 << 40));
}

static char *advised;
CARRIED(memory_with_advice)
SET(memory_with_advice) {
    advised = map_pages(1024, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    trial_fill(advised, 1024 * CHAOS_PAGE, 35);
    DOES(madvise(advised, 512 * CHAOS_PAGE, MADV_DONTDUMP));
    DOES(madvise(advised + 512 * CHAOS_PAGE, 512 * CHAOS_PAGE, MADV_NOHUGEPAGE));
}
/* The flags that /proc/self/smaps shows for the mapping around an address. */
static int has_flag(const void *address, const char *flag) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    int inside = 0, found = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2 && strchr(line, '-') < strchr(line, ' '))
            inside = (unsigned long)address >= start && (unsigned long)address < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    if (maps) fclose(maps);
    return found;
}
AFTER(memory_with_advice) {
    CHECK(trial_differs(advised, 1024 * CHAOS_PAGE, 35) < 0, "contents");
    CHECK(has_flag(advised, " dd"), "it would be dumped");
    CHECK(has_flag(advised + 600 * CHAOS_PAGE, " nh"), "it may be huge");
    CHECK(!has_flag(advised + 600 * CHAOS_PAGE, " dd"), "all of it is not dumped");
}

static char *not_inherited;
CARRIED(memory_that_children_do_not_get)
SET(memory_that_children_do_not_get) {
    not_inherited = map_pages(2, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    trial_fill(not_inherited, 2 * CHAOS_PAGE, 36);
    DOES(madvise(not_inherited, CHAOS_PAGE, MADV_DONTFORK));
    DOES(madvise(not_inherited + CHAOS_PAGE, CHAOS_PAGE, MADV_WIPEONFORK));
}
AFTER(memory_that_children_do_not_get) {
    CHECK(trial_differs(not_inherited, 2 * CHAOS_PAGE, 36) < 0, "contents");
    CHECK(has_flag(not_inherited, " dc") && has_flag(not_inherited + CHAOS_PAGE, " wf"), "advice");
}

static char *locked_pages;
CARRIED(memory_locked_in_place)
SET(memory_locked_in_place) {
    locked_pages = map_pages(4, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    trial_fill(locked_pages, 4 * CHAOS_PAGE, 37);
    DOES(mlock(locked_pages, 4 * CHAOS_PAGE));
}
AFTER(memory_locked_in_place) {
    CHECK(trial_differs(locked_pages, 4 * CHAOS_PAGE, 37) < 0, "contents");
    CHECK(has_flag(locked_pages, " lo"), "it is not locked");
}

static char *named;
CARRIED(memory_with_a_name)
SET(memory_with_a_name) {
    named = map_pages(2, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    trial_fill(named, 2 * CHAOS_PAGE, 38);
    /* Where the kernel has no names for memory, there is none to lose. */
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, 2 * CHAOS_PAGE, "chaos");
}
AFTER(memory_with_a_name) { CHECK(trial_differs(named, 2 * CHAOS_PAGE, 38) < 0, "contents"); }

static char *moved;
CARRIED(memory_that_was_moved)
SET(memory_that_was_moved) {
    char *from = map_pages(8, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    trial_fill(from, 8 * CHAOS_PAGE, 39);
    moved = mremap(from, 8 * CHAOS_PAGE, 4096 * CHAOS_PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED, "%s", strerror(errno));
}
AFTER(memory_that_was_moved) {
    CHECK(trial_differs(moved, 8 * CHAOS_PAGE, 39) < 0 && moved[4000 * CHAOS_PAGE] == 0, "contents");
    moved = mremap(moved, 4096 * CHAOS_PAGE, 8 * CHAOS_PAGE, 0);
    CHECK(trial_differs(moved, 8 * CHAOS_PAGE, 39) < 0, "contents once it has shrunk");
}

static char *segment;
CARRIED(system_v_segment)
SET(system_v_segment) {
    int id = shmget(IPC_PRIVATE, 4 * CHAOS_PAGE, IPC_CREAT | 0600);
    segment = shmat(id, NULL, 0);
    CHECK(segment != (void *)-1, "%s", strerror(errno));
    trial_fill(segment, 4 * CHAOS_PAGE, 40);
    DOES(shmctl(id, IPC_RMID, NULL));
}
AFTER(system_v_segment) {
    CHECK(trial_differs(segment, 4 * CHAOS_PAGE, 40) < 0, "contents");
    DOES(shmdt(segment));
    CHECK(!readable_page(segment), "it is still there");
}

static char *posix_segment;
CARRIED(posix_shared_memory)
SET(posix_shared_memory) {
    char name[64];
    snprintf(name, sizeof name, "/chaos-%d-%d", (int)getpid(), trial_rank);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 2 * CHAOS_PAGE) == 0, "%s", strerror(errno));
    posix_segment = mmap(NULL, 2 * CHAOS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    trial_fill(posix_segment, 2 * CHAOS_PAGE, 41);
    close(fd);
    shm_unlink(name);
}
AFTER(posix_shared_memory) { CHECK(trial_differs(posix_segment, 2 * CHAOS_PAGE, 41) < 0, "contents"); }

static int (*generated)(void);
CARRIED(code_made_at_run_time)
SET(code_made_at_run_time) {
    unsigned char code[] = {0xb8, 0x39, 0x30, 0, 0, 0xc3}; /* mov eax, 12345; ret */
    char *at = map_pages(1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    memcpy(at, code, sizeof code);
    DOES(mprotect(at, CHAOS_PAGE, PROT_READ | PROT_EXEC));
    generated = (int (*)(void))at;
}
AFTER(code_made_at_run_time) { CHECK(generated() == 12345, "%d", generated()); }

static char *file_copy;
CARRIED(private_file_mapping)
SET(private_file_mapping) {
    int fd = own_file("private_map", 0);
    DOES(ftruncate(fd, 3 * CHAOS_PAGE));
    file_copy = mmap(NULL, 3 * CHAOS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    file_copy[CHAOS_PAGE] = 'w';
}
AFTER(private_file_mapping) {
    CHECK(memcmp(file_copy, "0123456789", 10) == 0 && file_copy[CHAOS_PAGE] == 'w' && file_copy[2 * CHAOS_PAGE] == 0, "contents");
    remove_file("private_map");
}

static char *growing;
CARRIED(mapping_that_grows_down)
SET(mapping_that_grows_down) {
    growing = mmap(NULL, 4 * CHAOS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK, -1, 0);
    CHECK(growing != MAP_FAILED, "%s", strerror(errno));
    trial_fill(growing, 4 * CHAOS_PAGE, 42);
}
AFTER(mapping_that_grows_down) {
    CHECK(trial_differs(growing, 4 * CHAOS_PAGE, 42) < 0, "contents");
    CHECK(has_flag(growing, " gd"), "it does not grow any more");
}

static void *break_before;
CARRIED(program_break)
SET(program_break) {
    break_before = sbrk(3 * CHAOS_PAGE + 123);
    CHECK(break_before != (void *)-1, "%s", strerror(errno));
    trial_fill(break_before, 3 * CHAOS_PAGE, 43);
}
AFTER(program_break) { CHECK(trial_differs(break_before, 3 * CHAOS_PAGE, 43) < 0, "contents"); }
