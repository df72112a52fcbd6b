// Command eviction is a sample eviction plugin on katalyst-api's plugin skeleton: it watches a memory that it makes up,
// and requests the eviction of the pod that uses most when it is used up.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"sort"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubewharf/katalyst-api/pkg/plugins/skeleton"
	"github.com/kubewharf/katalyst-api/pkg/protocol/evictionplugin/v1alpha1"
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

type evictor struct {
	v1alpha1.UnimplementedEvictionPluginServer
}

func (*evictor) Name() string { return *name }
func (*evictor) Start() error { return nil }
func (*evictor) Stop() error  { return nil }

func (*evictor) ThresholdMet(_ context.Context, request *v1alpha1.GetThresholdMetRequest) (*v1alpha1.ThresholdMetResponse, error) {
	observed := 0.0
	for _, pod := range samplesOf(request.ActivePods) {
		observed += useOf(pod)
	}
	met := v1alpha1.ThresholdMetType_NOT_MET
	if observed > *limitMiB {
		met = v1alpha1.ThresholdMetType_HARD_MET
	}
	return &v1alpha1.ThresholdMetResponse{
		MetType:           met,
		EvictionScope:     "sample-memory",
		ObservedValue:     observed,
		ThresholdValue:    *limitMiB,
		ThresholdOperator: v1alpha1.ThresholdOperator_GREATER_THAN,
		Condition: &v1alpha1.Condition{
			ConditionType: v1alpha1.ConditionType_NODE_CONDITION,
			ConditionName: "SamplePressure",
			Effects:       []string{string(v1.TaintEffectPreferNoSchedule)},
			MetCondition:  met != v1alpha1.ThresholdMetType_NOT_MET,
		},
	}, nil
}

// GetTopEvictionPods names the pods to evict, the one that uses most first.
func (*evictor) GetTopEvictionPods(_ context.Context, request *v1alpha1.GetTopEvictionPodsRequest) (*v1alpha1.GetTopEvictionPodsResponse, error) {
	pods := samplesOf(request.ActivePods)
	sort.SliceStable(pods, func(a, b int) bool { return useOf(pods[a]) > useOf(pods[b]) })
	if request.TopN > 0 && uint64(len(pods)) > request.TopN {
		pods = pods[:request.TopN]
	}
	return &v1alpha1.GetTopEvictionPodsResponse{TargetPods: pods}, nil
}

func samplesOf(pods []*v1.Pod) []*v1.Pod {
	var samples []*v1.Pod
	for _, pod := range pods {
		if pod.Labels[sampleLabel] == "true" {
			samples = append(samples, pod)
		}
	}
	return samples
}

func useOf(pod *v1.Pod) float64 {
	if pod.Status.StartTime == nil {
		return firstUseMiB
	}
	return firstUseMiB + *leakMiB*time.Since(pod.Status.StartTime.Time).Seconds()
}

func main() {
	flag.Parse()
	plugin, err := skeleton.NewRegistrationPluginWrapper(&evictor{}, []string{*socketDir}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		log.Fatal(err)
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	<-ctx.Done()
	if err := plugin.Stop(); err != nil {
		log.Fatal(err)
	}
}
