/* One thing that a program may do with its system: it is set up before a checkpoint and checked after it. Any two or three
 * of them stand beside each other in one process, so none takes what is there once only from another. */
#ifndef CHAOS_FEATURE_H
#define CHAOS_FEATURE_H

#include "../common.h"

struct feature {
    const char *name;
    /* The code of the reason for which a checkpoint is refused; NULL: it is carried. */
    const char *refused;
    void (*set)(void);
    void (*check)(void);
};

/* They find each other by their section: one that is written here is also run. */
#define FEATURE_THAT(outcome, name)                                                              \
    static void set_##name(void);                                                                \
    static void check_##name(void);                                                              \
    static const struct feature feature_##name __attribute__((section("features"), used)) = {    \
        #name, outcome, set_##name, check_##name};

#define CARRIED(name) FEATURE_THAT(NULL, name)
#define REFUSED(word, name) FEATURE_THAT(word, name)

#define SET(name) static void set_##name(void)
#define AFTER(name) static void check_##name(void)

/* A call that gives something other than -1. */
#define DOES(call) CHECK((call) != -1, "%s: %s", #call, strerror(errno))

/* A new file of this rank with some text in it, opened for reading and writing. */
static inline int own_file(const char *name, int flags) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
    CHECK(fd >= 0, "%s: %s", path, strerror(errno));
    CHECK(write(fd, "0123456789", 10) == 10, "%s: %s", path, strerror(errno));
    return fd;
}

static inline void remove_file(const char *name) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, name);
    unlink(path);
}

/* What is read from here on is `text`. */
static inline void reads(int fd, const char *text) {
    char got[64] = "";
    ssize_t count = read(fd, got, strlen(text));
    CHECK(count == (ssize_t)strlen(text) && strcmp(got, text) == 0, "'%s' instead of '%s' (%s)", got, text, strerror(errno));
}

#endif
