// Decides pods as the taint-eviction controller does, by the library that it does it with, on one core: reads nodes as
// JSON, decides all their pods again and again, and writes how many in a second of computing, and what it decided.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

type node struct {
	Taints []v1.Taint `json:"taints"`
	Pods   []struct {
		Tolerations []v1.Toleration `json:"tolerations"`
	} `json:"pods"`
}

type outcome struct {
	PerSecond float64 `json:"perSecond"`
	Now       int     `json:"now"`
	Never     int     `json:"never"`
	Seconds   int64   `json:"seconds"`
}

// matching finds, for each taint, the first toleration that tolerates it, as GetMatchingTolerations does.
func matching(logger klog.Logger, taints []v1.Taint, tolerations []v1.Toleration) (bool, []v1.Toleration) {
	used := []v1.Toleration{}
next:
	for i := range taints {
		for j := range tolerations {
			if tolerations[j].ToleratesTaint(logger, &taints[i], false) {
				used = append(used, tolerations[j])
				continue next
			}
		}
		return false, nil
	}
	return true, used
}

// shortest is for how long the tolerations last: zero or more, or negative for ever.
func shortest(tolerations []v1.Toleration) time.Duration {
	seconds := int64(math.MaxInt64)
	for i := range tolerations {
		if own := tolerations[i].TolerationSeconds; own != nil {
			if *own <= 0 {
				return 0
			}
			seconds = min(seconds, *own)
		}
	}
	if seconds == math.MaxInt64 {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

func decideAll(logger klog.Logger, nodes []node, now time.Time) (result outcome) {
	for _, node := range nodes {
		for _, pod := range node.Pods {
			tolerated, used := matching(logger, node.Taints, pod.Tolerations)
			if !tolerated {
				result.Now++
				continue
			}
			lasts := shortest(used)
			if lasts < 0 {
				result.Never++
				continue
			}
			if due := now.Add(lasts); due.After(now) {
				result.Seconds += int64(due.Sub(now) / time.Second)
			} else {
				result.Now++
			}
		}
	}
	return result
}

// cpuTime is what this process has computed so far, whoever else does.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	runtime.GOMAXPROCS(1)
	var nodes []node
	file, err := os.Open(os.Args[1])
	if err == nil {
		err = json.NewDecoder(file).Decode(&nodes)
	}
	milliseconds, malformed := strconv.Atoi(os.Args[2])
	if err != nil || malformed != nil {
		fmt.Fprintln(os.Stderr, "usage: upstream NODES.json MILLISECONDS:", err, malformed)
		os.Exit(1)
	}
	pods := 0
	for _, node := range nodes {
		pods += len(node.Pods)
	}
	logger, now := klog.Background(), time.Now()
	var result outcome
	// Both begin warm.
	for range 3 {
		decideAll(logger, nodes, now)
	}
	rounds, began := 0, cpuTime()
	for cpuTime()-began < time.Duration(milliseconds)*time.Millisecond {
		result = decideAll(logger, nodes, now)
		rounds++
	}
	result.PerSecond = float64(rounds*pods) / (cpuTime() - began).Seconds()
	json.NewEncoder(os.Stdout).Encode(result)
}
