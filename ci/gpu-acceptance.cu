/* What `tests/programs/gpu/runtime.c` computes with: a kernel of this file and, with -DWITH_CUBLAS, products of matrices by cuBLAS. Results are 0 where nothing went wrong.
 *   nvcc -shared -cudart static -Xcompiler -fPIC -o LIBRARY gpu-acceptance.cu
 */
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#include <vector>
#ifdef WITH_CUBLAS
#include <cublas_v2.h>
#endif

namespace {

const int SIDE = 512;
const size_t COUNT = (size_t)SIDE * SIDE;
double *matrices[3];
cudaStream_t stream;
#ifdef WITH_CUBLAS
cublasHandle_t products;
#endif

int failed(cudaError_t result, const char *what) {
    if (result != cudaSuccess) fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
    return result != cudaSuccess;
}
#define TRY(CALL) if (failed(CALL, #CALL)) return 1

__global__ void start(double *matrix, int seed) {
    size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (at < COUNT) matrix[at] = (double)((at * 31 + seed * 17 + 1) % 1021) / 1021;
}

/* Values stay between 0 and 1. */
__global__ void mix(double *matrix, const double *other, double more) {
    size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (at >= COUNT) return;
    double sum = matrix[at] + other[COUNT - 1 - at] + more;
    matrix[at] = sum - floor(sum);
}

} // namespace

extern "C" int runtime_begin(int rank) {
    int devices = 0;
    TRY(cudaGetDeviceCount(&devices));
    TRY(cudaSetDevice(rank % devices));
    TRY(cudaStreamCreate(&stream));
    for (int i = 0; i < 3; i++) {
        TRY(cudaMalloc(&matrices[i], COUNT * sizeof(double)));
        start<<<(COUNT + 255) / 256, 256, 0, stream>>>(matrices[i], rank * 3 + i);
    }
#ifdef WITH_CUBLAS
    if (cublasCreate(&products) != CUBLAS_STATUS_SUCCESS || cublasSetStream(products, stream) != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cuBLAS does not begin\n");
        return 1;
    }
#endif
    return failed(cudaGetLastError(), "start");
}

extern "C" int runtime_step(double more) {
#ifdef WITH_CUBLAS
    const double one = 1.0 / SIDE, none = 0;
    if (cublasDgemm(products, CUBLAS_OP_N, CUBLAS_OP_T, SIDE, SIDE, SIDE, &one, matrices[0], SIDE, matrices[1], SIDE, &none, matrices[2], SIDE) !=
        CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cuBLAS makes no product\n");
        return 1;
    }
#endif
    mix<<<(COUNT + 255) / 256, 256, 0, stream>>>(matrices[0], matrices[2], more);
    mix<<<(COUNT + 255) / 256, 256, 0, stream>>>(matrices[1], matrices[0], more);
    mix<<<(COUNT + 255) / 256, 256, 0, stream>>>(matrices[2], matrices[1], more);
    return failed(cudaGetLastError(), "mix");
}

extern "C" int runtime_digest(uint64_t *digest) {
    std::vector<uint64_t> words(COUNT);
    *digest = 14695981039346656037u;
    for (double *matrix : matrices) {
        TRY(cudaMemcpyAsync(words.data(), matrix, COUNT * sizeof(double), cudaMemcpyDeviceToHost, stream));
        TRY(cudaStreamSynchronize(stream));
        for (uint64_t word : words) *digest = (*digest ^ word) * 1099511628211u;
    }
    return 0;
}
