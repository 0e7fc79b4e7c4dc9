/* Profiling by name, and the tools interface, work as they do natively.
 * trial: ranks=2 */
#include "../same.h"

static int counted;

/* A tool's own version of a function, which calls the real one by its other name. */
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    counted++;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Finalize(void) {
    say("counted", counted);
    return PMPI_Finalize();
}

static void variables(void) {
    int provided, variables, length = 256, description = 0, verbosity, binding, scope, index, count;
    char name[256];
    MPI_Datatype type;
    MPI_T_enum names;
    MPI_T_cvar_handle handle;
    MPI_T_pvar_session session;
    say("init", MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_T_cvar_get_num(&variables);
    say("variables", variables > 0);
    say("info", MPI_T_cvar_get_info(0, name, &length, &verbosity, &type, &names, NULL, &description,
                                    &binding, &scope));
    printf("%d first variable: %s %d %d %d\n", rank, name, verbosity, binding, scope);
    say("type", type == MPI_INT || type == MPI_UNSIGNED || type == MPI_CHAR || type == MPI_DOUBLE);
    say("no such name", MPI_T_cvar_get_index("nonsense", &index) == MPI_T_ERR_INVALID_NAME);
    say("no such index", MPI_T_cvar_handle_alloc(1 << 30, NULL, &handle, &count)
                             == MPI_T_ERR_INVALID_INDEX);
    say("handle", MPI_T_cvar_handle_alloc(0, NULL, &handle, &count));
    say("free", MPI_T_cvar_handle_free(&handle));
    say("session", MPI_T_pvar_session_create(&session));
    say("free", MPI_T_pvar_session_free(&session));
    say("finalize", MPI_T_finalize());
}

int main(int argc, char **argv) {
    begin(argc, argv);
    int mine = rank + 1, sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say("sum", sum);
    MPI_Pcontrol(1, 2, 3.0);
    double before = MPI_Wtime();
    say("time", before >= 0 && MPI_Wtime() >= before && MPI_Wtick() > 0 && MPI_Wtick() < 1);
    variables();
    MPI_Finalize();
    return 0;
}
