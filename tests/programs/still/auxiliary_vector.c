/* The stack that the program began on is as the kernel makes it: arguments, NULL, environment, NULL, auxiliary vector, one behind the
 * other; /proc shows the same vector, and the program's own file where its memory lies.
 * trial: ranks=2 */
#include "../common.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char **first_environment;
static Elf64_auxv_t *vector;

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {
    CHECK(argv + argc + 1 == environment && argv[argc] == NULL, "the environment is not behind the arguments");
    first_environment = environment;
    char **end = environment;
    while (*end) end++;
    vector = (Elf64_auxv_t *)(end + 1);
}

static unsigned long entry(const Elf64_auxv_t *at, const Elf64_auxv_t *end, unsigned long type) {
    for (; at < end && at->a_type != AT_NULL; at++)
        if (at->a_type == type) return at->a_un.a_val;
    return 0;
}

static void look(void) {
    char path[4][64] = {"/proc/self/auxv"};
    snprintf(path[1], 64, "/proc/%d/auxv", getpid());
    snprintf(path[2], 64, "/proc/self/task/%ld/auxv", syscall(SYS_gettid));
    strcpy(path[3], "/proc/thread-self/auxv");
    static const unsigned long types[] = {AT_SYSINFO_EHDR, AT_PHDR, AT_PHNUM, AT_BASE, AT_ENTRY, AT_EXECFN, AT_RANDOM, AT_PAGESZ, AT_CLKTCK};
    for (int which = 0; which < 4; which++) {
        Elf64_auxv_t shown[64];
        int file = open(path[which], O_RDONLY);
        ssize_t bytes = read(file, shown, sizeof shown);
        close(file);
        CHECK(bytes > 0, "%s: %s", path[which], strerror(errno));
        Elf64_auxv_t *end = shown + bytes / (ssize_t)sizeof *shown;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            unsigned long found = entry(vector, vector + 64, types[i]);
            CHECK(found != 0 && found == getauxval(types[i]), "type %lu: %#lx, getauxval %#lx", types[i], found, getauxval(types[i]));
            CHECK(found == entry(shown, end, types[i]), "%s: type %lu: %#lx, not %#lx", path[which], types[i], entry(shown, end, types[i]), found);
        }
    }
    CHECK(strstr((char *)entry(vector, vector + 64, AT_EXECFN), "auxiliary_vector"), "AT_EXECFN");
    for (char **variable = first_environment; *variable; variable++) CHECK(!strstr(*variable, "libstillpoint"), "the environment has %s", *variable);
    static char all[1 << 16];
    int file = open("/proc/self/environ", O_RDONLY);
    CHECK(read(file, all, sizeof all) > 0, "environ: %s", strerror(errno));
    close(file);
    CHECK(!memmem(all, sizeof all, "libstillpoint", 13), "/proc/self/environ shows the library");
}

static void look_at_files(char *mapped, const char *name) {
    char line[PATH_MAX + 100], own[PATH_MAX] = "";
    CHECK(readlink("/proc/self/exe", own, sizeof own - 1) > 0, "exe: %s", strerror(errno));
    int text = 0, data = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long start = 0, end = 0;
        sscanf(line, "%lx-%lx", &start, &end);
        line[strcspn(line, "\n")] = 0;
        if (start <= (unsigned long)look_at_files && (unsigned long)look_at_files < end) text = strstr(line, own) != NULL;
        if (start <= (unsigned long)mapped && (unsigned long)mapped < end) data = strstr(line, name) != NULL;
    }
    fclose(maps);
    CHECK(text && data, "/proc/self/maps: the program %d, a file %d", text, data);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    /* A file mapped privately: changed here and there, zero where the file is not. */
    char name[PATH_MAX];
    trial_own_file(name, sizeof name, "mapped");
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    static char bytes[5 * 4096 + 100];
    memset(bytes, 'f', sizeof bytes);
    CHECK(write(file, bytes, sizeof bytes) == sizeof bytes, "a file: %s", strerror(errno));
    char *mapped = mmap(NULL, sizeof bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    memset(mapped + 4096, 0, 4096);
    mapped[2 * 4096 + 7] = 'm';
    look();
    look_at_files(mapped, strrchr(name, '/') + 1);

    trial_hold();

    look();
    look_at_files(mapped, strrchr(name, '/') + 1);
    for (size_t i = 0; i < sizeof bytes; i++) {
        char wanted = i / 4096 == 1 ? 0 : i == 2 * 4096 + 7 ? 'm' : 'f';
        if (mapped[i] != wanted) {
            CHECK(0, "the mapped file has %d at %zu", mapped[i], i);
            break;
        }
    }
    /* What is dropped is read from the file again. */
    madvise(mapped, sizeof bytes, MADV_DONTNEED);
    CHECK(mapped[4096] == 'f' && mapped[2 * 4096 + 7] == 'f', "dropped pages: %d %d", mapped[4096], mapped[2 * 4096 + 7]);
    unlink(name);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
