// Plays rounds of eviction through katalyst's own eviction manager: one run of rounds per line of standard input, its
// result per line of standard output. test/e2e/katalyst-rounds.e2e.test.ts compares them with this agent's decisions.
//
// Upstream's, unchanged, from the module katalyst-core: the round itself (candidates, collection of answers, dry run,
// thresholds and their grace period, choice of the soft pod, validation, sort, queue, burst), and which evictions the
// asynchronous killer accepts.
//
// Not upstream's: the plugins (in-process endpoints that return what the input says), the node's pods, and the end of
// evictions. The killer's workers are not started, so every accepted eviction lasts until the end of its run and nothing
// is sent. Fields that the manager does not export are read and set by reflection, and one round is called by its link
// name: Run would start rounds by a timer.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Run is one life of a manager: rounds one after another, without time passing between them.
type Run struct {
	Burst           int      `json:"burst"`
	DryRun          []string `json:"dryRun"`
	SkipLabels      []string `json:"skipLabels"`
	SkipAnnotations []string `json:"skipAnnotations"`
	Rounds          []Round  `json:"rounds"`
}

// Round is the node's pods, and the answers of each plugin by its name.
type Round struct {
	Pods    []*v1.Pod         `json:"pods"`
	Plugins map[string]Plugin `json:"plugins"`
	// Scopes of the pods whose order is wanted, by UID.
	Scopes map[string]string `json:"scopes"`
}

// Plugin is what a plugin returns. Pods are named by UID; one that no pod ever had is sent as a pod of that name.
type Plugin struct {
	EvictPods []EvictPod `json:"evictPods"`
	Threshold Threshold  `json:"threshold"`
	Top       Top        `json:"top"`
}

// EvictPod is a pod of GetEvictPods; without a grace period no deletion options are sent.
type EvictPod struct {
	UID   string `json:"uid"`
	Force bool   `json:"force"`
	Grace *int64 `json:"grace"`
}

// Threshold is the answer to ThresholdMet.
type Threshold struct {
	MetType   string     `json:"metType"`
	Scope     string     `json:"scope"`
	Grace     int64      `json:"grace"`
	Condition *Condition `json:"condition"`
}

// Condition is met, and about the Node.
type Condition struct {
	Name    string   `json:"name"`
	Effects []string `json:"effects"`
}

// Top is the answer to GetTopEvictionPods: those of the pods that are offered.
type Top struct {
	UIDs  []string `json:"uids"`
	Grace *int64   `json:"grace"`
}

// Result has what a round did.
type Result struct {
	// Evictions that the killer accepted, sorted.
	Started []Eviction `json:"started"`
	// Pods that the manager selected, and that wait because of the burst.
	Waiting []string `json:"waiting"`
	// Names of the conditions in force, sorted.
	Conditions []string `json:"conditions"`
	// The pods with a scope, as upstream's strategy sorts them: the last is the first to be evicted.
	Order []string `json:"order"`
	// The panic that ended the manager, and with it the run; empty if there was none.
	Panic string `json:"panic"`
}

// Eviction is one request that would be sent.
type Eviction struct {
	UID   string `json:"uid"`
	Grace int64  `json:"grace"`
}

func main() {
	logs := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(logs)
	_ = logs.Set("logtostderr", "false")
	_ = logs.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)

	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	results := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		if err != nil && err != io.EOF {
			fail(err)
		}
		var run Run
		if err := json.Unmarshal(line, &run); err != nil {
			fail(err)
		}
		if err := results.Encode(play(run)); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
