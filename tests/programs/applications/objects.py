"""Python objects, split communicators and numpy buffers, over and over until `go` is there.

Every round's values follow from the round's number; whatever a restart loses or repeats is noticed.
"""

import os
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
directory = os.environ["TRIAL_DIR"]
half = world.Split(color=rank % 2, key=-rank)
both = world.Dup()
row = MPI.DOUBLE.Create_vector(4, 1, 3).Commit()
field = numpy.arange(12, dtype="d") + 100 * rank
total = numpy.zeros(5, dtype="d")
history = {"sum": 0}
later = both.Recv_init([field, 1, row], source=(rank - 1) % size, tag=9)


def check(holds, *what):
    if not holds:
        print("WRONG rank", rank, *what, file=sys.stderr, flush=True)
        world.Abort(1)


turn = 0
goes_on = True
while goes_on:
    # Objects, pickled by mpi4py.
    told = world.bcast({"turn": turn, "text": "é" * (turn % 50)} if rank == 0 else None)
    check(told == {"turn": turn, "text": "é" * (turn % 50)}, "bcast", turn, told)
    everyone = half.allgather((rank, turn))
    check(everyone == [(r, turn) for r in reversed(range(size)) if r % 2 == rank % 2], "allgather", turn, everyone)
    history["sum"] += sum(t for _, t in everyone)
    check(history["sum"] == half.size * turn * (turn + 1) // 2, "history", turn, history)
    # numpy buffers.
    mine = numpy.full(5, rank + turn, dtype="d")
    both.Allreduce(mine, total)
    check((total == size * (size - 1) / 2 + size * turn).all(), "Allreduce", turn, total)
    later.Start()
    other = numpy.full(12, 1000.0 * turn + rank)
    request = both.Isend([other, 1, row], dest=(rank + 1) % size, tag=9)
    MPI.Request.Waitall([later, request])
    check((field[[0, 3, 6, 9]] == 1000.0 * turn + (rank - 1) % size).all(), "the column", turn, field)
    check((field[[1, 2, 4, 5]] == numpy.array([1, 2, 4, 5]) + 100 * rank).all(), "beside the column", turn, field)
    if turn == 20:
        open(os.path.join(directory, f"ready.{rank}"), "w").close()
    goes_on = world.bcast(turn < 30 or not os.path.exists(os.path.join(directory, "go")) if rank == 0 else None)
    turn += 1

later.Free()
row.Free()
half.Free()
both.Free()
# In one piece, also where Python does not buffer.
sys.stdout.write(f"OK {rank}\n")
sys.stdout.flush()
