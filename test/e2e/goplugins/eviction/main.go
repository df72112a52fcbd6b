// Command eviction is an eviction plugin on katalyst-api's plugin skeleton. A file says whether its threshold is met
// and which pods have to go, so that a test can steer it; of the active pods it would take those that request most
// memory, which it reads from the pods as a real plugin does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"sort"
	"syscall"

	v1 "k8s.io/api/core/v1"

	"github.com/kubewharf/katalyst-api/pkg/plugins/skeleton"
	"github.com/kubewharf/katalyst-api/pkg/protocol/evictionplugin/v1alpha1"
)

// pressure is what the file holds.
type pressure struct {
	MetType   string   `json:"metType"`
	Scope     string   `json:"scope"`
	Observed  float64  `json:"observed"`
	Threshold float64  `json:"threshold"`
	Condition string   `json:"condition"`
	Forced    []string `json:"forced"`
}

type evictor struct {
	v1alpha1.UnimplementedEvictionPluginServer
	name string
	file string
}

func (e *evictor) Name() string { return e.name }
func (e *evictor) Start() error { return nil }
func (e *evictor) Stop() error  { return nil }

func (e *evictor) read() (pressure, error) {
	var said pressure
	text, err := os.ReadFile(e.file)
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	return said, err
}

func (e *evictor) ThresholdMet(_ context.Context, _ *v1alpha1.GetThresholdMetRequest) (*v1alpha1.ThresholdMetResponse, error) {
	said, err := e.read()
	if err != nil {
		return nil, err
	}
	response := &v1alpha1.ThresholdMetResponse{
		ThresholdValue:    said.Threshold,
		ObservedValue:     said.Observed,
		ThresholdOperator: v1alpha1.ThresholdOperator_GREATER_THAN,
		MetType:           v1alpha1.ThresholdMetType(v1alpha1.ThresholdMetType_value[said.MetType]),
		EvictionScope:     said.Scope,
	}
	if said.Condition != "" {
		response.Condition = &v1alpha1.Condition{
			ConditionType: v1alpha1.ConditionType_NODE_CONDITION,
			Effects:       []string{string(v1.TaintEffectNoSchedule)},
			ConditionName: said.Condition,
			MetCondition:  response.MetType != v1alpha1.ThresholdMetType_NOT_MET,
		}
	}
	return response, nil
}

func (e *evictor) GetTopEvictionPods(_ context.Context, request *v1alpha1.GetTopEvictionPodsRequest) (*v1alpha1.GetTopEvictionPodsResponse, error) {
	pods := append([]*v1.Pod{}, request.ActivePods...)
	sort.SliceStable(pods, func(a, b int) bool { return memoryOf(pods[a]) > memoryOf(pods[b]) })
	if uint64(len(pods)) > request.TopN {
		pods = pods[:request.TopN]
	}
	return &v1alpha1.GetTopEvictionPodsResponse{TargetPods: pods}, nil
}

func (e *evictor) GetEvictPods(_ context.Context, request *v1alpha1.GetEvictPodsRequest) (*v1alpha1.GetEvictPodsResponse, error) {
	said, err := e.read()
	if err != nil {
		return nil, err
	}
	response := &v1alpha1.GetEvictPodsResponse{}
	for _, name := range said.Forced {
		for _, pod := range request.ActivePods {
			if pod.Namespace+"/"+pod.Name == name {
				response.EvictPods = append(response.EvictPods, &v1alpha1.EvictPod{Pod: pod, Reason: "the file says so", ForceEvict: true})
			}
		}
	}
	return response, nil
}

func (e *evictor) GetToken(context.Context, *v1alpha1.Empty) (*v1alpha1.GetTokenResponse, error) {
	return &v1alpha1.GetTokenResponse{}, nil
}

func memoryOf(pod *v1.Pod) int64 {
	var sum int64
	for _, container := range pod.Spec.Containers {
		sum += container.Resources.Requests.Memory().Value()
	}
	return sum
}

func main() {
	name := flag.String("name", "go-eviction", "the plugin's name")
	directory := flag.String("directory", "", "the directory that the agent watches")
	file := flag.String("file", "", "what to say")
	flag.Parse()

	plugin, err := skeleton.NewRegistrationPluginWrapper(&evictor{name: *name, file: *file}, []string{*directory}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		log.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	if err := plugin.Stop(); err != nil {
		log.Fatal(err)
	}
}
