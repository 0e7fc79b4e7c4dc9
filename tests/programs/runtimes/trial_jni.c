/* MPI for Trial.java. */
#include "steps.h"
#include <jni.h>

#define NATIVE(type, name, ...) JNIEXPORT type JNICALL Java_Trial_##name(JNIEnv *environment, jclass trial, ##__VA_ARGS__)
#define UNUSED ((void)environment, (void)trial)

NATIVE(void, start) {
    int provided;
    UNUSED;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
}
NATIVE(jint, rank) { return UNUSED, steps_rank(); }
NATIVE(jdouble, sum, jdouble mine) { return UNUSED, steps_sum(mine); }
NATIVE(void, halfWay) { UNUSED, steps_half_way(); }
NATIVE(void, stop) { UNUSED, MPI_Finalize(); }
