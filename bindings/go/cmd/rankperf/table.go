// SPDX-License-Identifier: BSD-3-Clause

package main

import (
	"fmt"
	"math"
	"sort"
)

// printHead prints the names of the columns, which are those of rankbench.
func printHead(r *row) {
	if r.bandwidth {
		fmt.Printf(" %-10s %-14s %-17s %-20s %-14s %7s\n", "#bytes", "#iterations", "BW peak[MiB/sec]", "BW average[MiB/sec]",
			"MsgRate[Mpps]", "#wrong")
		return
	}
	fmt.Printf(" %-10s %-12s %-12s %-12s %-15s %-12s %-13s %-20s %-22s %7s\n", "#bytes", "#iterations", "t_min[usec]",
		"t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]", "99% percentile[usec]", "99.9% percentile[usec]",
		"#wrong")
}

// printRow prints one size. times are seconds of samples of several operations.
func printRow(r *row, bytes, operations int, times []float64, bad int) {
	sort.Float64s(times)
	sum, squares := 0.0, 0.0
	for _, t := range times {
		sum += t
	}
	mean := sum / float64(len(times))
	for _, t := range times {
		squares += (t - mean) * (t - mean)
	}
	if r.bandwidth {
		moved := float64(bytes) * float64(operations) / (1 << 20)
		fmt.Printf(" %-10d %-14d %-17.2f %-20.2f %-14.6f %7d\n", bytes, len(times)*operations, moved/times[0], moved/mean,
			float64(operations)/mean/1e6, bad)
		return
	}
	at := func(part float64) float64 { return times[int(part*float64(len(times)-1))] * 1e6 }
	fmt.Printf(" %-10d %-12d %-12.3f %-12.3f %-15.3f %-12.3f %-13.3f %-20.3f %-22.3f %7d\n", bytes, len(times), at(0), at(1),
		at(0.5), mean*1e6, math.Sqrt(squares/float64(len(times)))*1e6, at(0.99), at(0.999), bad)
}
