/* Messages too long for their receives, beside one that fits, told by every form that takes several requests; with statuses
 * and without, and with messages that come while rank 1 already waits.
 * trial: ranks=2 */
#include "../common.h"

enum { WAITANY, TESTANY, WAITSOME, TESTSOME, WAITALL, TESTALL, FORMS };
enum { FITS = 1, MANY = 3 };

static MPI_Request requests[MANY];
static int in[MANY], wrong[MANY], told[MANY];

static int are_wanted(const MPI_Status *statuses) { return statuses != MPI_STATUSES_IGNORE; }

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void tell(int index, int code) {
    if (index < 0 || index >= MANY) {
        CHECK(0, "index %d", index);
        return;
    }
    told[index]++;
    wrong[index] = code != MPI_SUCCESS;
    CHECK(!wrong[index] || class_of(code) == MPI_ERR_TRUNCATE, "request %d: class %d", index, class_of(code));
}

/* Open MPI gives up all that have failed with the first that it tells of. */
static void any(int waits, MPI_Status *place) {
    for (;;) {
        int index = -1, flag = 0, code = 0;
        if (waits) code = MPI_Waitany(MANY, requests, &index, place);
        while (!waits && !flag && !code) code = MPI_Testany(MANY, requests, &index, &flag, place);
        if (index == MPI_UNDEFINED) break;
        tell(index, code);
    }
    int failed = told[0] ? 0 : MANY - 1, other = MANY - 1 - failed;
    CHECK(told[failed] == 1 && told[other] <= 1, "told %d and %d times", told[failed], told[other]);
    told[other] = 1, wrong[other] = wrong[failed];
}

static void some(int waits, MPI_Status *statuses) {
    for (int seen = 0; seen < MANY;) {
        int count = 0, indices[MANY], code = 0;
        if (waits) code = MPI_Waitsome(MANY, requests, &count, indices, statuses);
        while (!waits && count == 0 && !code) code = MPI_Testsome(MANY, requests, &count, indices, statuses);
        CHECK(count > 0 && count <= MANY, "%d at once", count);
        if (count <= 0 || count > MANY) return;
        CHECK(!code || class_of(code) == MPI_ERR_IN_STATUS, "class %d", class_of(code));
        for (int i = 0; i < count; i++) {
            int expected = indices[i] == FITS ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
            /* Where nothing failed, MPI_ERROR says nothing. */
            tell(indices[i], are_wanted(statuses) && code ? statuses[i].MPI_ERROR : expected);
        }
        seen += count;
    }
}

/* A wait may end at the first failure and leave what is not complete as it is: MPI_ERR_PENDING (MPI 4.0, 3.7.5). */
static void all(int waits, MPI_Status *statuses) {
    for (int left = MANY; left > 0;) {
        int flag = 0, code = 0, open[MANY], pending = 0, failures = 0;
        for (int i = 0; i < MANY; i++) open[i] = requests[i] != MPI_REQUEST_NULL;
        if (waits) code = MPI_Waitall(MANY, requests, statuses);
        while (!waits && !flag && !code) code = MPI_Testall(MANY, requests, &flag, statuses);
        for (int i = 0; i < MANY; i++) {
            if (!open[i]) continue;
            if (requests[i] != MPI_REQUEST_NULL) {
                CHECK(!are_wanted(statuses) || statuses[i].MPI_ERROR == MPI_ERR_PENDING, "request %d is left", i);
                pending++;
                continue;
            }
            int expected = i == FITS ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
            tell(i, are_wanted(statuses) && code ? statuses[i].MPI_ERROR : expected);
            failures += i != FITS;
            left--;
        }
        CHECK(class_of(code) == (failures ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "class %d", class_of(code));
        CHECK(failures || !pending, "%d left without a failure", pending);
        if (!failures && pending) return;
    }
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int peer = 1 - trial_rank, out[2] = {7, 8};
    for (int form = 0; form < 4 * FORMS; form++) {
        MPI_Status statuses[MANY];
        MPI_Status *place = form / FORMS % 2 == 0 ? statuses : MPI_STATUSES_IGNORE;
        int late = form >= 2 * FORMS && trial_rank == 0;
        memset(told, 0, sizeof told);
        for (int i = 0; i < MANY; i++) {
            in[i] = 0;
            MUST(MPI_Irecv(&in[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[i]));
        }
        if (form == WAITANY) trial_ready();
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        if (form == WAITANY) trial_wait();
        for (int i = 0; i < MANY; i++) {
            MUST(MPI_Send(out, i == FITS ? 1 : 2, MPI_INT, peer, i, MPI_COMM_WORLD));
            if (late) usleep(5000);
        }
        switch (form % FORMS) {
        case WAITANY:
        case TESTANY: any(form % FORMS == WAITANY, place); break;
        case WAITSOME:
        case TESTSOME: some(form % FORMS == WAITSOME, place); break;
        default: all(form % FORMS == WAITALL, place);
        }
        for (int i = 0; i < MANY; i++) {
            CHECK(told[i] == 1, "form %d: request %d told %d times", form, i, told[i]);
            CHECK(wrong[i] == (i != FITS), "form %d: request %d: wrong is %d", form, i, wrong[i]);
            CHECK(requests[i] == MPI_REQUEST_NULL, "form %d: request %d is not null", form, i);
        }
        CHECK(in[FITS] == 7, "form %d: got %d", form, in[FITS]);
    }
    return trial_finish();
}
