/* Functions that the library which a program was linked to may not have yet: they are looked for by name. */
#ifndef TRIAL_NEWER_H
#define TRIAL_NEWER_H

#include "common.h"
#include <dlfcn.h>

#ifndef MPI_BUFFER_AUTOMATIC
#define MPI_BUFFER_AUTOMATIC ((void *)-2) /* MPICH 5's. */
#endif

static inline void *named(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        trial_wrong(__FILE__, __LINE__, name, "%s", "there is no such function");
        exit(1);
    }
    return found;
}

#endif
