// Command eviction is a sample eviction plugin: it watches a memory that it makes up, and requests the eviction of the pod
// that uses most when it is used up.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"sort"
	"syscall"
	"time"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
	eviction "github.com/nodekeeper/nodekeeper/sdk-go/gen/evictionplugin/v1alpha1"
	core "github.com/nodekeeper/nodekeeper/sdk-go/gen/k8s/core/v1"
)

const (
	// Pods with this label leak, for this plugin.
	sampleLabel = "example.com/sample"
	firstUseMiB = 64
)

var (
	socketDir = flag.String("socket-dir", "/var/lib/nodekeeper/plugins_registry", "the directory that the agent watches")
	name      = flag.String("name", "example-eviction", "the plugin's name")
	limitMiB  = flag.Float64("limit", 1600, "what all sample pods together may use, MiB")
	leakMiB   = flag.Float64("leak", 8, "what every sample pod uses more with each second, MiB")
)

func main() {
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	options := nodekeeper.Options{Name: *name, SocketDir: *socketDir}
	plugin := nodekeeper.EvictionPlugin{ThresholdMet: thresholdMet, TopPods: topPods}
	if err := nodekeeper.ServeEvictionPlugin(ctx, options, plugin); err != nil {
		log.Fatal(err)
	}
}

func thresholdMet(_ context.Context, pods []*core.Pod) (*eviction.ThresholdMetResponse, error) {
	observed := 0.0
	for _, pod := range samplesOf(pods) {
		observed += useOf(pod)
	}
	met := eviction.ThresholdMetType_NOT_MET
	if observed > *limitMiB {
		met = eviction.ThresholdMetType_HARD_MET
	}
	return &eviction.ThresholdMetResponse{
		MetType:           met,
		EvictionScope:     "sample-memory",
		ObservedValue:     observed,
		ThresholdValue:    *limitMiB,
		ThresholdOperator: eviction.ThresholdOperator_GREATER_THAN,
		Condition: &eviction.Condition{
			ConditionType: eviction.ConditionType_NODE_CONDITION,
			ConditionName: "SamplePressure",
			Effects:       []string{"PreferNoSchedule"},
			MetCondition:  met != eviction.ThresholdMetType_NOT_MET,
		},
	}, nil
}

// topPods returns the pods to evict, the one that uses most first.
func topPods(_ context.Context, pods []*core.Pod, _ int, _ string) ([]*core.Pod, error) {
	samples := samplesOf(pods)
	sort.SliceStable(samples, func(a, b int) bool { return useOf(samples[a]) > useOf(samples[b]) })
	return samples, nil
}

func samplesOf(pods []*core.Pod) []*core.Pod {
	var samples []*core.Pod
	for _, pod := range pods {
		if pod.GetMetadata().GetLabels()[sampleLabel] == "true" {
			samples = append(samples, pod)
		}
	}
	return samples
}

func useOf(pod *core.Pod) float64 {
	startedAt := pod.GetStatus().GetStartTime()
	if startedAt == nil {
		return firstUseMiB
	}
	return firstUseMiB + *leakMiB*time.Since(time.Unix(startedAt.GetSeconds(), 0)).Seconds()
}
