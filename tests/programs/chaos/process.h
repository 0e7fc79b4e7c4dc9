/* What a process has besides memory and descriptors. */
#include "feature.h"
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <sys/wait.h>

CARRIED(working_directory)
SET(working_directory) {
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "working");
    DOES(mkdir(path, 0700));
    DOES(chdir(path));
    close(open("here", O_CREAT | O_WRONLY, 0600));
}
AFTER(working_directory) {
    CHECK(access("here", F_OK) == 0, "another directory: %s", strerror(errno));
    unlink("here");
    char path[PATH_MAX];
    trial_own_file(path, sizeof path, "working");
    rmdir(path);
}

CARRIED(mask_for_new_files)
SET(mask_for_new_files) { umask(0137); }
AFTER(mask_for_new_files) {
    mode_t was = umask(022);
    CHECK(was == 0137, "%o", was);
}

CARRIED(limit_on_cores)
SET(limit_on_cores) {
    struct rlimit limit = {12345, 1 << 20};
    DOES(setrlimit(RLIMIT_CORE, &limit));
}
AFTER(limit_on_cores) {
    struct rlimit limit;
    DOES(getrlimit(RLIMIT_CORE, &limit));
    CHECK(limit.rlim_cur == 12345 && limit.rlim_max == 1 << 20, "%ld %ld", (long)limit.rlim_cur, (long)limit.rlim_max);
}

CARRIED(limit_on_descriptors)
SET(limit_on_descriptors) {
    struct rlimit limit;
    DOES(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 800;
    DOES(setrlimit(RLIMIT_NOFILE, &limit));
}
AFTER(limit_on_descriptors) {
    struct rlimit limit;
    DOES(getrlimit(RLIMIT_NOFILE, &limit));
    CHECK(limit.rlim_cur == 800, "%ld", (long)limit.rlim_cur);
    CHECK(fcntl(0, F_DUPFD, 800) == -1 && errno == EINVAL, "%s", strerror(errno));
}

CARRIED(limit_on_the_size_of_files)
SET(limit_on_the_size_of_files) {
    struct rlimit limit = {64 << 20, RLIM_INFINITY};
    DOES(setrlimit(RLIMIT_FSIZE, &limit));
}
AFTER(limit_on_the_size_of_files) {
    struct rlimit limit;
    DOES(getrlimit(RLIMIT_FSIZE, &limit));
    CHECK(limit.rlim_cur == 64 << 20, "%ld", (long)limit.rlim_cur);
}

CARRIED(name_of_the_process)
SET(name_of_the_process) { DOES(prctl(PR_SET_NAME, "chaotic name")); }
AFTER(name_of_the_process) {
    char name[17] = "";
    DOES(prctl(PR_GET_NAME, name));
    CHECK(strcmp(name, "chaotic name") == 0, "'%s'", name);
}

CARRIED(no_dumps)
SET(no_dumps) { DOES(prctl(PR_SET_DUMPABLE, 0)); }
AFTER(no_dumps) { CHECK(prctl(PR_GET_DUMPABLE) == 0, "%d", prctl(PR_GET_DUMPABLE)); }

CARRIED(no_huge_pages)
SET(no_huge_pages) { DOES(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)); }
AFTER(no_huge_pages) { CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1, "%d", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0)); }

CARRIED(adopts_orphans)
SET(adopts_orphans) { DOES(prctl(PR_SET_CHILD_SUBREAPER, 1)); }
AFTER(adopts_orphans) {
    int value = 0;
    DOES(prctl(PR_GET_CHILD_SUBREAPER, &value));
    CHECK(value == 1, "%d", value);
}

CARRIED(slack_of_timers)
SET(slack_of_timers) { DOES(prctl(PR_SET_TIMERSLACK, 123456)); }
AFTER(slack_of_timers) { CHECK(prctl(PR_GET_TIMERSLACK) == 123456, "%d", prctl(PR_GET_TIMERSLACK)); }

CARRIED(nice_value)
SET(nice_value) { DOES(setpriority(PRIO_PROCESS, 0, 5)); }
AFTER(nice_value) { CHECK(getpriority(PRIO_PROCESS, 0) == 5, "%d", getpriority(PRIO_PROCESS, 0)); }

CARRIED(scheduling_policy)
SET(scheduling_policy) {
    struct sched_param parameters = {0};
    DOES(sched_setscheduler(0, SCHED_BATCH, &parameters));
}
AFTER(scheduling_policy) { CHECK(sched_getscheduler(0) == SCHED_BATCH, "%d", sched_getscheduler(0)); }

static pid_t known_as, known_parent, known_group, known_session;
CARRIED(ids_of_the_process)
SET(ids_of_the_process) {
    known_as = getpid();
    known_parent = getppid();
    known_group = getpgrp();
    known_session = getsid(0);
}
AFTER(ids_of_the_process) {
    CHECK(getpid() == known_as && getpgrp() == known_group && getsid(0) == known_session, "%d %d %d", getpid(), getpgrp(), getsid(0));
    CHECK(getppid() == known_parent, "%d was %d", getppid(), known_parent);
    CHECK(kill(known_as, 0) == 0, "%s", strerror(errno));
}

CARRIED(environment_that_was_changed)
SET(environment_that_was_changed) {
    setenv("CHAOS_NEW", "value", 1);
    unsetenv("HOME");
}
AFTER(environment_that_was_changed) {
    CHECK(getenv("CHAOS_NEW") && strcmp(getenv("CHAOS_NEW"), "value") == 0 && !getenv("HOME"), "%s", getenv("CHAOS_NEW"));
}

CARRIED(rounding_of_numbers)
SET(rounding_of_numbers) { fesetround(FE_UPWARD); }
AFTER(rounding_of_numbers) {
    CHECK(fegetround() == FE_UPWARD, "%x", fegetround());
    volatile double one = 1.0, three = 3.0;
    CHECK(one / three * three > 1.0, "%.20f", one / three * three);
    fesetround(FE_TONEAREST);
}

CARRIED(locale_of_the_program)
SET(locale_of_the_program) { CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL, "setlocale"); }
AFTER(locale_of_the_program) {
    CHECK(strcmp(setlocale(LC_CTYPE, NULL), "C.UTF-8") == 0, "%s", setlocale(LC_CTYPE, NULL));
    wchar_t wide = 0;
    CHECK(mbtowc(&wide, "\xc3\xa4", 2) == 2 && wide == 0xe4, "%x", (unsigned)wide);
}

static pid_t gone;
CARRIED(child_that_has_been_waited_for)
SET(child_that_has_been_waited_for) {
    gone = fork();
    if (gone == 0) _exit(9);
    int status;
    CHECK(waitpid(gone, &status, 0) == gone && WEXITSTATUS(status) == 9, "%s", strerror(errno));
}
AFTER(child_that_has_been_waited_for) {
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "%s", strerror(errno));
    pid_t child = fork();
    if (child == 0) _exit(3);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3, "%s", strerror(errno));
}

static double resumed_at;
CARRIED(clock_that_does_not_go_back)
SET(clock_that_does_not_go_back) { resumed_at = trial_seconds(); }
AFTER(clock_that_does_not_go_back) {
    CHECK(trial_seconds() >= resumed_at, "%f s earlier", resumed_at - trial_seconds());
    time_t now = time(NULL);
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    CHECK(exact.tv_sec - now <= 1 && now > 1700000000, "%ld", (long)now);
}

CARRIED(program_started_by_the_shell)
SET(program_started_by_the_shell) { CHECK(system("exit 3") >> 8 == 3, "system"); }
AFTER(program_started_by_the_shell) {
    CHECK(system("exit 4") >> 8 == 4, "system");
    FILE *pipe = popen("echo through a pipe", "r");
    char text[32] = "";
    CHECK(pipe && fgets(text, sizeof text, pipe) && strcmp(text, "through a pipe\n") == 0, "'%s'", text);
    if (pipe) pclose(pipe);
}
