// Plays rounds of eviction with katalyst's own eviction manager and its plugins over their sockets: the peer of the
// agent's eviction module in `npm run bench:peers`. bench/peers/eviction-process.ts is the other side.
//
// It prints a line when it is ready, then answers commands from stdin, one JSON object a line:
//
//	rounds <count>   plays so many; the wall and CPU time of each, milliseconds
//
// One round is called by its link name, because Run would start rounds by a timer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
	_ "unsafe" // for the link name of one round

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubewharf/katalyst-core/pkg/agent/evictionmanager"
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

func main() {
	pods := flag.String("pods", "", "a JSON file of the node's pods")
	sockets := flag.String("sockets", "", "the directory of plugin-0.sock and so on")
	plugins := flag.Int("plugins", 0, "how many there are")
	flag.Parse()
	logs := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(logs)
	_ = logs.Set("logtostderr", "false")
	_ = logs.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	if err := run(*pods, *sockets, *plugins); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(podsFile, sockets string, plugins int) error {
	text, err := os.ReadFile(podsFile)
	if err != nil {
		return err
	}
	fetcher := &pod.PodFetcherStub{}
	if err := json.Unmarshal(text, &fetcher.PodList); err != nil {
		return err
	}
	manager, err := newManager(fetcher)
	if err != nil {
		return err
	}
	for at := range plugins {
		name := fmt.Sprintf("plugin-%d", at)
		if err := manager.RegisterPlugin(name, filepath.Join(sockets, name+".sock"), nil); err != nil {
			return err
		}
	}
	answer(map[string]float64{"pods": float64(len(activePods(fetcher.PodList)))})
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var count int
		if _, err := fmt.Sscanf(input.Text(), "rounds %d", &count); err != nil {
			return fmt.Errorf("command %q: %w", input.Text(), err)
		}
		from, startedAt := cpuMs(), time.Now()
		for range count {
			playRound(manager, context.Background())
		}
		rounds := float64(count)
		answer(map[string]float64{
			"ms":    float64(time.Since(startedAt)) / 1e6 / rounds,
			"cpuMs": (cpuMs() - from) / rounds,
		})
	}
	return input.Err()
}

func newManager(pods pod.PodFetcher) (*evictionmanager.EvictionManger, error) {
	conf := config.NewConfiguration()
	conf.GenericEvictionConfiguration.InnerPlugins = []string{}
	conf.PodKiller = consts.KillerNameEvictionKiller
	conf.EvictionBurst = 3
	conf.ConditionTransitionPeriod = 5 * time.Minute
	conf.GenericConfiguration.AuthConfiguration.AuthType = credential.AuthTypeInsecure
	conf.GenericConfiguration.AuthConfiguration.AccessControlType = authorization.AccessControlTypeInsecure
	server := &metaserver.MetaServer{MetaAgent: &agent.MetaAgent{PodFetcher: pods}}
	return evictionmanager.NewEvictionManager(&client.GenericClientSet{}, nil, server, metrics.DummyMetrics{}, conf)
}

func activePods(pods []*v1.Pod) (active []*v1.Pod) {
	for _, one := range pods {
		if one.Status.Phase == v1.PodRunning {
			active = append(active, one)
		}
	}
	return active
}

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
