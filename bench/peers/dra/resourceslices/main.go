// Publishes the devices of one driver with the controller of k8s.io/dynamic-resource-allocation, as drivers do that
// publish by themselves: the peer of the agent's devices module in `npm run bench:peers`.
//
// It prints a line when it is ready, and reads commands from stdin, one a line:
//
//	publish <devices> <tick>   all devices; the one in the middle has the tick among its attributes
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"
)

// As many as the API allows in a slice.
const devicesPerSlice = 128

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	driver := flag.String("driver", "", "the driver's name")
	node := flag.String("node", "", "the node's name")
	qps := flag.Float64("qps", 1000, "requests a second; the burst is the same")
	flag.Parse()
	if err := run(*kubeconfig, *driver, *node, float32(*qps)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, driver, node string, qps float32) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, int(qps)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Its watch is open before the first command, as the agent's is.
	controller, err := resourceslice.StartController(ctx, resourceslice.Options{
		DriverName: driver,
		KubeClient: client,
		Owner:      &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: node},
		Resources:  &resourceslice.DriverResources{},
	})
	if err != nil {
		return err
	}
	defer controller.Stop()
	input := bufio.NewScanner(os.Stdin)
	fmt.Println("{}")
	for input.Scan() {
		var count, tick int
		if _, err := fmt.Sscanf(input.Text(), "publish %d %d", &count, &tick); err != nil {
			return fmt.Errorf("command %q: %w", input.Text(), err)
		}
		controller.Update(resourcesOf(node, count, tick))
	}
	return input.Err()
}

func resourcesOf(node string, count, tick int) *resourceslice.DriverResources {
	var pool resourceslice.Pool
	for first := 0; first < count; first += devicesPerSlice {
		var slice resourceslice.Slice
		for at := first; at < min(first+devicesPerSlice, count); at++ {
			changes := 0
			if at == count/2 {
				changes = tick
			}
			slice.Devices = append(slice.Devices, deviceOf(at, changes))
		}
		pool.Slices = append(pool.Slices, slice)
	}
	return &resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}}
}

func deviceOf(at, changes int) resourceapi.Device {
	return resourceapi.Device{
		Name: fmt.Sprintf("accelerator-%d", at),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"model":         {StringValue: ptr.To("alpha")},
			"driverVersion": {VersionValue: ptr.To("1.4.2")},
			"index":         {IntValue: ptr.To(int64(at))},
			"numaNode":      {IntValue: ptr.To(int64(at % 2))},
			"changes":       {IntValue: ptr.To(int64(changes))},
			"healthy":       {BoolValue: ptr.To(true)},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory": {Value: resource.MustParse("40Gi")},
			"cores":  {Value: resource.MustParse("108")},
		},
	}
}
