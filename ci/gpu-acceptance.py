"""What `ci/gpu-acceptance` computes with the machine's own Python: `gpu-acceptance.py NAME STEPS` with one of the names below.

It is ready behind its first steps, and waits before its last ones until it is let go. Afterwards it prints a digest of everything that was computed:
the same in every run. `has NAME` says what is missing for NAME. `TRIAL_DEVICE=cpu` computes without a GPU.
"""

import ctypes
import hashlib
import importlib
import os
import sys
import time

FIRST, LAST = 5, 5
NEEDS = {
    "cupy": ["cupy"],
    "torch": ["torch"],
    "mpi4py": ["mpi4py", "numpy"],
    "mpi4py-gpu": ["mpi4py", "cupy"],
}
PLACE = os.environ.get("TRIAL_DIR", "")
DEVICE = os.environ.get("TRIAL_DEVICE", "cuda")


def paced(steps, rank=0):
    """Counts the steps: says when the rank is ready, and waits for its last steps."""
    for step in range(steps):
        if step == FIRST and PLACE:
            open(f"{PLACE}/ready.{rank}", "w").close()
        if step == steps - LAST:
            while PLACE and not os.path.exists(f"{PLACE}/go"):
                time.sleep(0.01)
        yield step


def within_mpi(compute, steps):
    """Only programs of an MPI are checkpointed: computes between MPI_Init and MPI_Finalize, also without mpi4py."""
    library = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
    if library.MPI_Init(None, None) != 0:
        sys.exit("MPI_Init fails")
    parts = compute(steps)
    library.MPI_Finalize()
    return parts


def digest_of(parts):
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()[:16]


def on_cupy(steps):
    import cupy

    first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    numbers = cupy.random.RandomState(7)
    matrix = numbers.random_sample((512, 512))
    other = matrix.T.copy()
    own = cupy.RawKernel(
        'extern "C" __global__ void turn(double *all, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;'
        " if (i < n) { double sum = all[i] * 1.5 + 0.25; all[i] = sum - floor(sum); } }",
        "turn",
    )
    cupy.cuda.Device().synchronize()
    for step in paced(steps):
        with first:
            own((matrix.size // 256,), (256,), (matrix, matrix.size))
            made = cupy.linalg.norm(matrix) + cupy.fft.fft(matrix[step % 512]).real.sum()
        first.synchronize()
        with second:
            other = (other @ matrix + made) % 1.0
            # Memory of changing sizes from the pool.
            numbers.random_sample(1000 + 37 * step)
        second.synchronize()
    return [matrix.get().tobytes(), other.get().tobytes(), numbers.random_sample(64).get().tobytes()]


def on_torch(steps):
    import torch

    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    gpu = DEVICE == "cuda"
    if gpu and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(0.2), torch.nn.Linear(16 * 30 * 30, 64), torch.nn.GELU(), torch.nn.Linear(64, 10)
    ).to(DEVICE)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    side = torch.cuda.Stream() if gpu else None
    pinned = torch.empty(32, 3, 32, 32, pin_memory=gpu)
    still = torch.zeros(256, 256, device=DEVICE)
    weights = torch.rand(256, 256, device=DEVICE)
    graph = None
    if gpu:
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            (still @ weights).frac_()
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            still.copy_((still @ weights + 0.125).frac_())
    losses = []
    for step in paced(steps):
        # From the host's generator by pinned memory, in a stream of its own.
        pinned.normal_()
        if gpu:
            with torch.cuda.stream(side):
                batch = pinned.to(DEVICE, non_blocking=True)
            side.synchronize()
            graph.replay()
        else:
            batch = pinned.clone()
            still.copy_((still @ weights + 0.125).frac_())
        kind = torch.randint(0, 10, (32,), device=DEVICE)
        # The allocator gets blocks of changing sizes, and gives them back now and then.
        torch.empty(1000 + 977 * step, device=DEVICE)
        if gpu and step % 50 == 49:
            torch.cuda.empty_cache()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(batch), kind)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    kept = [*network.parameters(), still, torch.stack(losses), torch.rand(64, device=DEVICE)]
    return [tensor.detach().cpu().numpy().tobytes() for tensor in kept]


def ranks(steps, module):
    """Each rank's numbers depend on all the others': an MPI with arrays of `module`."""
    from mpi4py import MPI

    every = MPI.COMM_WORLD
    rank, size = every.Get_rank(), every.Get_size()
    if module.__name__ == "cupy":
        module.cuda.Device(rank % module.cuda.runtime.getDeviceCount()).use()
    mine = module.arange(4096, dtype="f8") % 97 + rank
    total, beside = module.empty_like(mine), module.empty_like(mine)
    # The machine's MPI knows nothing of GPUs.
    by_host = module.__name__ == "cupy" and "TRIAL_NATIVELY" in os.environ
    for step in paced(steps, rank):
        if module.__name__ == "cupy":
            module.cuda.get_current_stream().synchronize()
        given, places = mine, (total, beside)
        if by_host:
            given, places = mine.get(), (total.get(), beside.get())
        every.Allreduce(given, places[0], op=MPI.SUM)
        every.Sendrecv(given, (rank + 1) % size, recvbuf=places[1], source=(rank - 1) % size)
        if by_host:
            total.set(places[0])
            beside.set(places[1])
        mine = (mine * 0.5 + total + beside + step) % 97.0
        words = every.allgather({"rank": rank, "step": step})
        if [word["rank"] for word in words] != list(range(size)):
            sys.exit(f"rank {rank}: {words}")
    mine = mine.get() if module.__name__ == "cupy" else mine
    parts = every.gather(mine.tobytes(), root=0)
    return parts if rank == 0 else None


def main():
    name, steps = sys.argv[1], sys.argv[2]
    if name == "has":
        for module in NEEDS[steps]:
            try:
                importlib.import_module(module)
            except Exception as error:
                print(f"python3 has no {module}: {error}".splitlines()[0])
                return
        return
    steps = int(steps)
    if name == "cupy":
        parts = within_mpi(on_cupy, steps)
    elif name == "torch":
        parts = within_mpi(on_torch, steps)
    else:
        parts = ranks(steps, importlib.import_module("cupy" if name == "mpi4py-gpu" else "numpy"))
    if parts is not None:
        print(f"digest {digest_of(parts)}", flush=True)


main()
