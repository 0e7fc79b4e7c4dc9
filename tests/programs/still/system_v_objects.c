/* System V semaphores keep their values and a message queue stays what it is, under their ids; a wait for either goes on. Limits of the
 * process, the hard ones too, are as the program set them.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>

union semun { int val; unsigned short *array; };
static int set, queue;

static void *wait_for_semaphore(void *unused) {
    struct sembuf take = {2, -3, 0};
    while (semop(set, &take, 1)) CHECK(errno == EINTR, "semop: %s", strerror(errno));
    return unused;
}

static void *wait_for_message(void *text) {
    struct { long type; char text[16]; } message;
    ssize_t got;
    while ((got = msgrcv(queue, &message, sizeof message.text, 7, 0)) < 0) CHECK(errno == EINTR, "msgrcv: %s", strerror(errno));
    memcpy(text, message.text, sizeof message.text);
    return NULL;
}

static void limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit limit = {soft, hard};
    CHECK(setrlimit(resource, &limit) == 0, "limit %d: %s", resource, strerror(errno));
}

static void expect_limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit limit;
    getrlimit(resource, &limit);
    CHECK(limit.rlim_cur == soft && limit.rlim_max == hard, "limit %d: %lu, %lu", resource, limit.rlim_cur, limit.rlim_max);
}

int main(int argc, char **argv) {
    trial_start_threads(&argc, &argv, MPI_THREAD_FUNNELED);
    set = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
    queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    CHECK(set >= 0 && queue >= 0, "%s", strerror(errno));
    unsigned short values[3] = {4, 0, 1};
    semctl(set, 0, SETALL, (union semun){.array = values});
    limit(RLIMIT_CORE, 0, 4096);
    limit(RLIMIT_NOFILE, 300, 500);
    limit(RLIMIT_MSGQUEUE, 1000, 2000);
    char text[16] = "";
    pthread_t waits[2];
    pthread_create(&waits[0], NULL, wait_for_semaphore, NULL);
    pthread_create(&waits[1], NULL, wait_for_message, text);
    usleep(20000);
    trial_hold();

    memset(values, 9, sizeof values);
    CHECK(semctl(set, 0, GETALL, (union semun){.array = values}) == 0, "%s", strerror(errno));
    CHECK(values[0] == 4 && values[1] == 0 && values[2] == 1, "values %d %d %d", values[0], values[1], values[2]);
    struct sembuf give = {2, 2, 0};
    CHECK(semop(set, &give, 1) == 0, "%s", strerror(errno));
    struct { long type; char text[16]; } message = {7, "carried on"};
    CHECK(msgsnd(queue, &message, sizeof message.text, 0) == 0, "%s", strerror(errno));
    for (int i = 0; i < 2; i++) pthread_join(waits[i], NULL);
    CHECK(semctl(set, 2, GETVAL) == 0, "%d is left", semctl(set, 2, GETVAL));
    CHECK(strcmp(text, "carried on") == 0, "'%s'", text);
    expect_limit(RLIMIT_CORE, 0, 4096);
    expect_limit(RLIMIT_NOFILE, 300, 500);
    expect_limit(RLIMIT_MSGQUEUE, 1000, 2000);
    semctl(set, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
