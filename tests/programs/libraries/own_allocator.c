/* An allocator as users preload one: small blocks that were freed wait in lists of the thread, in its static storage. It lacks
 * malloc_usable_size. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

enum { STEP = 64, LISTS = 16 };

/* Before every block. */
struct head {
    size_t bytes;
    void *base;
};

static __thread struct head *waiting[LISTS] __attribute__((tls_model("initial-exec")));

static struct head *head_of(void *block) { return (struct head *)block - 1; }

static void *take(size_t alignment, size_t bytes) {
    size_t list = bytes / STEP;
    if (alignment <= 16 && list < LISTS && waiting[list]) {
        struct head *head = waiting[list];
        waiting[list] = *(struct head **)(head + 1);
        return head + 1;
    }
    /* Whatever comes from a list is as large as the largest block of that list. */
    size_t room = (list + 1) * STEP;
    if (alignment < 16) alignment = 16;
    char *base = __libc_malloc(room + alignment + sizeof(struct head));
    if (!base) return NULL;
    uintptr_t block = ((uintptr_t)base + sizeof(struct head) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    *head_of((void *)block) = (struct head){room, base};
    return (void *)block;
}

void *malloc(size_t bytes) { return take(16, bytes); }

void free(void *block) {
    if (!block) return;
    struct head *head = head_of(block);
    size_t list = head->bytes / STEP - 1;
    if (list >= LISTS) {
        __libc_free(head->base);
        return;
    }
    *(struct head **)block = waiting[list];
    waiting[list] = head;
}

void *calloc(size_t count, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(count, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    volatile char *block = malloc(bytes);
    for (size_t i = 0; block && i < bytes; i++) block[i] = 0;
    return (void *)block;
}

void *realloc(void *old, size_t bytes) {
    char *block = malloc(bytes);
    if (!old || !block) return block;
    size_t had = head_of(old)->bytes;
    for (size_t i = 0; i < had && i < bytes; i++) block[i] = ((volatile char *)old)[i];
    free(old);
    return block;
}

void *memalign(size_t alignment, size_t bytes) { return take(alignment, bytes); }

void *aligned_alloc(size_t alignment, size_t bytes) { return take(alignment, bytes); }

int posix_memalign(void **place, size_t alignment, size_t bytes) {
    *place = take(alignment, bytes);
    return *place ? 0 : ENOMEM;
}
