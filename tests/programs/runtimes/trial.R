# R's heap and its linear algebra; MPI through Rmpi.
suppressPackageStartupMessages(library(Rmpi))
steps <- 100
rank <- mpi.comm.rank(0)
set.seed(rank + 1)
everywhere <- function(mine) mpi.allreduce(mine, type = 2, op = "sum", comm = 0)
total <- 0
kept <- list()
for (step in seq_len(steps)) {
  x <- matrix(rnorm(400), 20)
  kept[[step %% 20 + 1]] <- x
  total <- total + everywhere(sum(solve(x + diag(20) * 40)))
  if (step == steps / 2) {
    if (rank == 0) { cat("half-way\n"); flush(stdout()) }
    go <- Sys.getenv("RUNTIMES_GO")
    while (everywhere(as.numeric(rank == 0 && go != "" && !file.exists(go))) != 0) Sys.sleep(0.002)
  }
}
if (rank == 0) cat(sprintf("total %.12f %.12f\n", total, sum(sapply(kept, sum))))
invisible(mpi.finalize())
