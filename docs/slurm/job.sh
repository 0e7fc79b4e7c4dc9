#!/bin/sh
# One script for the first launch and for every one after it. Put your program and its options in the last line.
#SBATCH --ntasks=2
#SBATCH --time=4:00:00
#SBATCH --signal=USR1@120 --requeue --open-mode=append
exec srun --mpi=pmix stillpoint run --dir stillpoint-%j.d --resume --finished-ok --requeue --on-term suspend -- "$@"
