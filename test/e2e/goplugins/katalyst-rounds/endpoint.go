package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pluginapi "github.com/kubewharf/katalyst-api/pkg/protocol/evictionplugin/v1alpha1"
)

// An endpoint that returns what the input says, as a plugin behind a socket would.
type scripted struct {
	plugin Plugin
	// Also those of earlier rounds, by UID.
	pods map[string]*v1.Pod
}

func newEndpoint(plugin Plugin, pods map[string]*v1.Pod) *scripted {
	return &scripted{plugin: plugin, pods: pods}
}

func (s *scripted) GetEvictPods(context.Context, *pluginapi.GetEvictPodsRequest) (*pluginapi.GetEvictPodsResponse, error) {
	answer := &pluginapi.GetEvictPodsResponse{}
	for _, one := range s.plugin.EvictPods {
		answer.EvictPods = append(answer.EvictPods, &pluginapi.EvictPod{
			Pod:             s.podOf(one.UID),
			Reason:          "scripted",
			ForceEvict:      one.Force,
			DeletionOptions: deletionOptions(one.Grace),
		})
	}
	return answer, nil
}

func (s *scripted) ThresholdMet(context.Context) (*pluginapi.ThresholdMetResponse, error) {
	met := map[string]pluginapi.ThresholdMetType{
		"none": pluginapi.ThresholdMetType_NOT_MET,
		"soft": pluginapi.ThresholdMetType_SOFT_MET,
		"hard": pluginapi.ThresholdMetType_HARD_MET,
	}
	threshold := s.plugin.Threshold
	answer := &pluginapi.ThresholdMetResponse{
		MetType:            met[threshold.MetType],
		EvictionScope:      threshold.Scope,
		ThresholdValue:     0.8,
		ObservedValue:      0.9,
		GracePeriodSeconds: threshold.Grace,
	}
	if condition := threshold.Condition; condition != nil {
		answer.Condition = &pluginapi.Condition{
			ConditionType: pluginapi.ConditionType_NODE_CONDITION,
			ConditionName: condition.Name,
			Effects:       condition.Effects,
			MetCondition:  true,
		}
	}
	return answer, nil
}

func (s *scripted) GetTopEvictionPods(_ context.Context, request *pluginapi.GetTopEvictionPodsRequest) (*pluginapi.GetTopEvictionPodsResponse, error) {
	offered := map[string]bool{}
	for _, one := range request.ActivePods {
		offered[string(one.UID)] = true
	}
	answer := &pluginapi.GetTopEvictionPodsResponse{DeletionOptions: deletionOptions(s.plugin.Top.Grace)}
	for _, uid := range s.plugin.Top.UIDs {
		if offered[uid] {
			answer.TargetPods = append(answer.TargetPods, s.pods[uid])
		}
	}
	return answer, nil
}

func (s *scripted) Start()                       {}
func (s *scripted) Stop()                        {}
func (s *scripted) IsStopped() bool              { return false }
func (s *scripted) StopGracePeriodExpired() bool { return false }

func (s *scripted) podOf(uid string) *v1.Pod {
	if known, ok := s.pods[uid]; ok {
		return known
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: uid}}
}

func deletionOptions(grace *int64) *pluginapi.DeletionOptions {
	if grace == nil {
		return nil
	}
	return &pluginapi.DeletionOptions{GracePeriodSeconds: *grace}
}
