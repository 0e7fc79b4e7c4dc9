/* A rank is blocked in MPI_Recv when the checkpoint comes, with values in all registers that a function keeps; another one gets the
 * message that it waits for once it is parked; and what follows are a message that is too long and one from anybody.
 * trial: ranks=4 */
#include "../common.h"

#define LARGE (300 << 10)

struct {
    void *buffer;
    long count;
    MPI_Datatype datatype;
    long source, tag;
    MPI_Comm comm;
    MPI_Status *status;
} asked;

/* Receives as `asked`, which is read here; whether the registers that MPI_Recv must keep are what they were. */
int receive_with_registers(void);
__asm__(".text\n"
        ".globl receive_with_registers\n"
        ".type receive_with_registers, @function\n"
        "receive_with_registers:\n\t"
        "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "leaq asked(%rip), %rax\n\t"
        "movq (%rax), %rdi\n\tmovq 8(%rax), %rsi\n\tmovq 16(%rax), %rdx\n\tmovq 24(%rax), %rcx\n\t"
        "movq 32(%rax), %r8\n\tmovq 40(%rax), %r9\n\t"
        "movq $11, %rbx\n\tmovq $22, %rbp\n\tmovq $33, %r12\n\tmovq $44, %r13\n\tmovq $55, %r14\n\tmovq $66, %r15\n\t"
        "pushq 48(%rax)\n\tcall MPI_Recv@PLT\n\taddq $8, %rsp\n\t"
        "testl %eax, %eax\n\tjne 1f\n\t"
        "cmpq $11, %rbx\n\tjne 1f\n\tcmpq $22, %rbp\n\tjne 1f\n\tcmpq $33, %r12\n\tjne 1f\n\t"
        "cmpq $44, %r13\n\tjne 1f\n\tcmpq $55, %r14\n\tjne 1f\n\tcmpq $66, %r15\n\tjne 1f\n\t"
        "movl $1, %eax\n\tjmp 2f\n"
        "1:\txorl %eax, %eax\n"
        "2:\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret\n");

/* Rank 0 is the last to enter the barrier that rank 3 is in: until then it may not be stopped, and it sends in between. */
static void send_once_the_receiver_is_parked(MPI_Comm pair, char *buffer) {
    trial_compute(1.0);
    trial_fill(buffer, LARGE, 5);
    MUST(MPI_Send(buffer, 16, MPI_BYTE, 2, 1, MPI_COMM_WORLD));
    MUST(MPI_Barrier(pair));
    trial_wait();
}

static void send_the_rest(char *buffer) {
    trial_fill(buffer, LARGE, 6);
    MUST(MPI_Send(buffer, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
    MUST(MPI_Send(buffer, 64, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
    MUST(MPI_Send(buffer, LARGE, MPI_BYTE, 1, 4, MPI_COMM_WORLD));
}

static void receive_the_rest(char *buffer) {
    MPI_Status status;
    int count = 0;
    asked.buffer = buffer;
    asked.count = LARGE;
    asked.datatype = MPI_BYTE;
    asked.source = 0;
    asked.tag = 2;
    asked.comm = MPI_COMM_WORLD;
    asked.status = &status;
    CHECK(receive_with_registers() == 1, "registers, or the receive");
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 2, "status %d, %d", status.MPI_SOURCE, status.MPI_TAG);
    CHECK(trial_differs(buffer, LARGE, 6) < 0, "wrong from byte %ld on", trial_differs(buffer, LARGE, 6));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Recv(buffer, 32, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status), class = 0;
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TRUNCATE, "error class %d", class);
    MUST(MPI_Recv(buffer, LARGE, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 4 && count == LARGE, "tag %d, %d bytes", status.MPI_TAG, count);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    char *buffer = calloc(LARGE, 1);
    MPI_Comm pair;
    MUST(MPI_Comm_split(MPI_COMM_WORLD, trial_rank % 3 == 0, 0, &pair));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    trial_ready();
    if (trial_rank == 0) {
        send_once_the_receiver_is_parked(pair, buffer);
        send_the_rest(buffer);
    } else if (trial_rank == 1) {
        receive_the_rest(buffer);
    } else if (trial_rank == 2) {
        MUST(MPI_Recv(buffer, 16, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(trial_differs(buffer, 16, 5) < 0, "wrong from byte %ld on", trial_differs(buffer, 16, 5));
        trial_wait();
    } else {
        MUST(MPI_Barrier(pair));
        trial_wait();
    }
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
