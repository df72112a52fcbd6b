package main

import (
	"context"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
	_ "unsafe" // for the link name of one round

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	pluginapi "github.com/kubewharf/katalyst-api/pkg/protocol/evictionplugin/v1alpha1"
	"github.com/kubewharf/katalyst-core/pkg/agent/evictionmanager"
	"github.com/kubewharf/katalyst-core/pkg/agent/evictionmanager/endpoint"
	"github.com/kubewharf/katalyst-core/pkg/agent/evictionmanager/podkiller"
	"github.com/kubewharf/katalyst-core/pkg/agent/evictionmanager/rule"
	"github.com/kubewharf/katalyst-core/pkg/client"
	"github.com/kubewharf/katalyst-core/pkg/config"
	"github.com/kubewharf/katalyst-core/pkg/consts"
	"github.com/kubewharf/katalyst-core/pkg/metaserver"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/agent"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/agent/pod"
	"github.com/kubewharf/katalyst-core/pkg/metrics"
	"github.com/kubewharf/katalyst-core/pkg/util/credential"
	"github.com/kubewharf/katalyst-core/pkg/util/credential/authorization"
)

//go:linkname playRound github.com/kubewharf/katalyst-core/pkg/agent/evictionmanager.(*EvictionManger).sync
func playRound(m *evictionmanager.EvictionManger, ctx context.Context)

// life is one manager with what its rounds left.
type life struct {
	conf    *config.Configuration
	manager *evictionmanager.EvictionManger
	killer  podkiller.PodKiller
	pods    *pod.PodFetcherStub
	// All pods so far, by UID.
	known map[string]*v1.Pod
	// The evictions that earlier rounds started.
	started map[Eviction]bool
}

// play returns the results of all rounds of a run, up to the one in which the manager panics.
func play(run Run) []Result {
	one := begin(run)
	results := []Result{}
	for _, round := range run.Rounds {
		result := Result{}
		result.Panic = survive(func() { result = one.play(round) })
		results = append(results, result)
		if result.Panic != "" {
			break
		}
	}
	return results
}

func begin(run Run) *life {
	conf := configurationOf(run)
	pods := &pod.PodFetcherStub{}
	server := &metaserver.MetaServer{MetaAgent: &agent.MetaAgent{PodFetcher: pods}}
	manager, err := evictionmanager.NewEvictionManager(&client.GenericClientSet{}, nil, server, metrics.DummyMetrics{}, conf)
	if err != nil {
		fail(err)
	}
	// Its workers are not started: see main.go.
	killer := podkiller.NewAsynchronizedPodKiller(podkiller.DummyKiller{}, nil)
	set(manager, "podKiller", killer)
	return &life{conf, manager, killer, pods, map[string]*v1.Pod{}, map[Eviction]bool{}}
}

func (l *life) play(round Round) Result {
	for _, one := range round.Pods {
		l.known[string(one.UID)] = one
	}
	l.pods.PodList = round.Pods
	endpoints := map[string]endpoint.Endpoint{}
	for name, plugin := range round.Plugins {
		endpoints[name] = newEndpoint(plugin, l.known)
	}
	set(l.manager, "endpoints", endpoints)
	playRound(l.manager, context.Background())
	return Result{
		Started:    l.newlyStarted(),
		Waiting:    l.waiting(),
		Conditions: l.conditionNames(),
		Order:      orderOf(round, l.conf),
	}
}

func (l *life) newlyStarted() []Eviction {
	started := []Eviction{}
	for eviction := range l.accepted() {
		if !l.started[eviction] {
			l.started[eviction] = true
			started = append(started, eviction)
		}
	}
	sort.Slice(started, func(i, j int) bool {
		a, b := started[i], started[j]
		return a.UID < b.UID || a.UID == b.UID && a.Grace < b.Grace
	})
	return started
}

// The evictions that the killer is about, by the table that it keeps: "namespace/name", then grace period.
func (l *life) accepted() map[Eviction]bool {
	uids := map[string]string{}
	for uid, one := range l.known {
		uids[one.Namespace+"/"+one.Name] = uid
	}
	all := map[Eviction]bool{}
	processing := field(l.killer, "processingPods")
	for _, key := range processing.MapKeys() {
		for _, grace := range processing.MapIndex(key).MapKeys() {
			uid, isKnown := uids[key.String()]
			if !isKnown {
				_, uid, _ = strings.Cut(key.String(), "/")
			}
			all[Eviction{UID: uid, Grace: grace.Int()}] = true
		}
	}
	return all
}

func (l *life) waiting() []string {
	uids := []string{}
	for _, one := range field(l.manager, "killQueue").Interface().(rule.EvictionQueue).List() {
		uids = append(uids, string(one.Pod.UID))
	}
	sort.Strings(uids)
	return uids
}

func (l *life) conditionNames() []string {
	names := []string{}
	for name := range field(l.manager, "conditions").Interface().(map[string]*pluginapi.Condition) {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// survive returns the panic of work, or an empty text.
func survive(work func()) (panicked string) {
	defer func() {
		if reason := recover(); reason != nil {
			panicked = fmt.Sprint(reason)
		}
	}()
	work()
	return ""
}

func configurationOf(run Run) *config.Configuration {
	conf := config.NewConfiguration()
	conf.GenericEvictionConfiguration.InnerPlugins = []string{}
	conf.PodKiller = consts.KillerNameEvictionKiller
	conf.EvictionBurst = run.Burst
	conf.ConditionTransitionPeriod = 5 * time.Minute
	conf.EvictionSkippedLabelKeys = sets.NewString(run.SkipLabels...)
	conf.EvictionSkippedAnnotationKeys = sets.NewString(run.SkipAnnotations...)
	conf.GenericConfiguration.AuthConfiguration.AuthType = credential.AuthTypeInsecure
	conf.GenericConfiguration.AuthConfiguration.AccessControlType = authorization.AccessControlTypeInsecure
	conf.GetDynamicConfiguration().DryRun = run.DryRun
	return conf
}

// The order of upstream's strategy alone, whichever of the pods the round is about.
func orderOf(round Round, conf *config.Configuration) []string {
	list := rule.RuledEvictPodList{}
	for _, one := range round.Pods {
		if scope, isWanted := round.Scopes[string(one.UID)]; isWanted {
			list = append(list, &rule.RuledEvictPod{EvictPod: &pluginapi.EvictPod{Pod: one}, Scope: scope})
		}
	}
	rule.NewEvictionStrategyImpl(conf).CandidateSort(list)
	uids := []string{}
	for _, one := range list {
		uids = append(uids, string(one.Pod.UID))
	}
	return uids
}

// A field of a struct, also where it is not exported.
func field(of any, name string) reflect.Value {
	one := reflect.ValueOf(of).Elem().FieldByName(name)
	return reflect.NewAt(one.Type(), one.Addr().UnsafePointer()).Elem()
}

func set(of any, name string, value any) {
	field(of, name).Set(reflect.ValueOf(value))
}
