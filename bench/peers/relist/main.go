// Relists the pods of a CRI runtime as the kubelet does, with its generic PLEG, its runtime manager and its CRI client:
// the peer of the agent's lifecycle module in `npm run bench:peers`. bench/peers/lifecycle-process.ts is the other side.
//
// It prints what the first list cost, then answers commands from stdin, one JSON object a line:
//
//	relists <count>   waits for so many more lists; the CPU time of the process for each
//	events <count>    waits until so many events were emitted since the start; time from the last list to the last event
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	cadvisorapi "github.com/google/cadvisor/info/v1"
	"go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	internalapi "k8s.io/cri-api/pkg/apis"
	cri "k8s.io/cri-client/pkg"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/pleg"
	proberesults "k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/utils/clock"
)

// More than a first list of 2,000 pods emits; the kubelet's channel holds 1,000.
const eventCapacity = 20_000

func main() {
	socket := flag.String("socket", "", "of the CRI runtime")
	period := flag.Duration("period", time.Second, "pause between two lists")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	if err := run(*socket, *period); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(socket string, period time.Duration) error {
	before, startedAt := cpuMs(), time.Now()
	runtime, err := newRuntime("unix://" + socket)
	if err != nil {
		return err
	}
	counted := &countedRuntime{Runtime: runtime, lists: make(chan struct{}, 1)}
	events := make(chan *pleg.PodLifecycleEvent, eventCapacity)
	duration := &pleg.RelistDuration{RelistPeriod: period, RelistThreshold: time.Hour}
	generator := pleg.NewGenericPLEG(klog.Background(), counted, events, duration, kubecontainer.NewCache(), clock.RealClock{})
	generator.Start()
	// The first list is processed when the second begins.
	counted.await(1)
	for counted.begun.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	reader := &eventReader{events: events}
	reader.drain()
	answer(map[string]float64{"cpuMs": cpuMs() - before, "ms": msSince(startedAt) - ms(period), "events": float64(reader.count)})
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var op string
		var count int
		if _, err := fmt.Sscanf(input.Text(), "%s %d", &op, &count); err != nil {
			return fmt.Errorf("command %q: %w", input.Text(), err)
		}
		switch op {
		case "relists":
			counted.awaitNext()
			from := cpuMs()
			counted.await(count)
			answer(map[string]float64{"cpuMs": (cpuMs() - from) / float64(count)})
		case "events":
			reader.await(count)
			listedAt := time.Unix(0, counted.listedAt.Load())
			answer(map[string]float64{"ms": ms(reader.lastAt.Sub(listedAt)), "events": float64(reader.count)})
		default:
			return fmt.Errorf("command %q is unknown", input.Text())
		}
	}
	return input.Err()
}

// countedRuntime counts the lists of pods that were requested and returned.
type countedRuntime struct {
	kubecontainer.Runtime
	begun    atomic.Int64
	listedAt atomic.Int64
	lists    chan struct{}
}

func (r *countedRuntime) GetPods(ctx context.Context, all bool) ([]*kubecontainer.Pod, error) {
	r.begun.Add(1)
	pods, err := r.Runtime.GetPods(ctx, all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "list of pods:", err)
	}
	r.listedAt.Store(time.Now().UnixNano())
	select {
	case r.lists <- struct{}{}:
	default:
	}
	return pods, err
}

// await waits for so many more lists. One that ended before counts if nobody waited for it.
func (r *countedRuntime) await(count int) {
	for range count {
		<-r.lists
	}
}

// awaitNext waits for a list that has not ended yet.
func (r *countedRuntime) awaitNext() {
	select {
	case <-r.lists:
	default:
	}
	<-r.lists
}

type eventReader struct {
	events chan *pleg.PodLifecycleEvent
	count  int
	lastAt time.Time
}

func (r *eventReader) drain() {
	for {
		select {
		case <-r.events:
			r.count++
		default:
			return
		}
	}
}

func (r *eventReader) await(count int) {
	for r.count < count {
		<-r.events
		r.count++
		r.lastAt = time.Now()
	}
}

func newRuntime(endpoint string) (kuberuntime.KubeGenericRuntime, error) {
	ctx := context.Background()
	tracing := noop.NewTracerProvider()
	runtimeService, err := cri.NewRemoteRuntimeService(ctx, endpoint, 2*time.Minute, tracing, false)
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "nkrelist-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	runtime, _, err := kuberuntime.NewKubeGenericRuntimeManager(
		ctx, &record.FakeRecorder{},
		proberesults.NewManager(), proberesults.NewManager(), proberesults.NewManager(),
		directory, directory, &cadvisorapi.MachineInfo{}, noPodStates{}, 2_000, kubecontainer.RealOS{}, nil, nil,
		flowcontrol.NewBackOff(time.Second, time.Minute), true, nil, 0, 0,
		string(kubeletconfig.NeverVerify), nil, "", "", nil, false, metav1.Duration{},
		runtimeService, noImages{}, cm.NewFakeContainerManager(), logs.NewStubContainerLogManager(), nil,
		false, "", func() v1.ResourceList { return nil }, 0, kubeletconfig.NoneMemoryReservationPolicy, nil,
		tracing, nil, nil, nil,
	)
	return runtime, err
}

// noImages is never called: a list reads no images.
type noImages struct {
	internalapi.ImageManagerService
}

// noPodStates is asked only by garbage collection, which does not run here.
type noPodStates struct{}

func (noPodStates) IsPodTerminationRequested(types.UID) bool { return false }
func (noPodStates) ShouldPodContentBeRemoved(types.UID) bool { return false }
func (noPodStates) ShouldPodRuntimeBeRemoved(types.UID) bool { return false }

func answer(values map[string]float64) {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func cpuMs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func msSince(at time.Time) float64 { return ms(time.Since(at)) }

func ms(duration time.Duration) float64 { return float64(duration) / 1e6 }
