// Goroutines on several threads, garbage, and MPI through cgo.
package main

/*
#cgo pkg-config: ompi-c
#include "../steps.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"time"
)

const steps = 200

func worker(in <-chan int, out chan<- float64) {
	for start := range in {
		values := make([]float64, 20000)
		for i := range values {
			values[i] = float64((start + i) % 17)
		}
		sum := 0.0
		for _, value := range values {
			sum += value
		}
		out <- sum
	}
}

func main() {
	runtime.LockOSThread()
	C.MPI_Init(nil, nil)
	rank := int(C.steps_rank())
	in, out := make(chan int, 4), make(chan float64)
	for i := 0; i < 4; i++ {
		go worker(in, out)
	}
	total := 0.0
	began := time.Now()
	for step := 0; step < steps; step++ {
		for i := 0; i < 4; i++ {
			in <- rank + step + i
		}
		mine := 0.0
		for i := 0; i < 4; i++ {
			mine += <-out
		}
		total += float64(C.steps_sum(C.double(mine)))
		if step == steps/2 {
			C.steps_half_way()
		}
		if step%50 == 0 {
			runtime.GC()
		}
		time.Sleep(time.Millisecond)
	}
	if time.Since(began) < 0 {
		fmt.Println("time went back")
	}
	C.MPI_Finalize()
	if rank == 0 {
		fmt.Printf("total %.0f\n", total)
	}
}
