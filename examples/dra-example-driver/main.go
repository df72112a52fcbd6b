// Command dra-example-driver does what the kubelet plugin of kubernetes-sigs/dra-example-driver does: it has the same simulated
// devices, understands the same configuration, and sets the same variables in containers.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	nodekeeper "github.com/nodekeeper/nodekeeper/sdk-go"
)

// options are those of upstream's flags that are not about what the agent does in the driver's place, and the socket's directory.
type options struct {
	socketDir, driverName, profileName      string
	count                                   int
	gpuPartitions                           int
	gpuStatus, gpuShared, bindingConditions bool
	numaNodes, cpusPerNUMANode              int
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	driver, err := newDriver(o)
	if err != nil {
		log.Fatal(err)
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	if err := nodekeeper.ServeDeviceDriver(ctx, nodekeeper.Options{Name: o.driverName, SocketDir: o.socketDir}, driver); err != nil {
		log.Fatal(err)
	}
}

// parse returns the options of the command line and, where it has none, those of variables such as NUM_DEVICES.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("dra-example-driver", flag.ExitOnError)
	flags.StringVar(&o.socketDir, "socket-dir", "/var/lib/nodekeeper/plugins_registry", "the directory that the agent watches")
	flags.StringVar(&o.driverName, "driver-name", "", "the driver's name; by default <device-profile>.example.com")
	flags.StringVar(&o.profileName, "device-profile", "gpu", "gpu, net or cpu")
	flags.IntVar(&o.count, "num-devices", 8, "how many GPUs or network interfaces")
	flags.IntVar(&o.gpuPartitions, "gpu-partitions", 0, "how many partitions a GPU has; 0: it can't be partitioned")
	flags.BoolVar(&o.gpuStatus, "gpu-device-status", false, "report the status of allocated GPUs")
	flags.BoolVar(&o.gpuShared, "gpu-allow-multiple-allocations", false, "let several requests share a GPU")
	flags.BoolVar(&o.bindingConditions, "binding-conditions", false, "set binding conditions on GPUs")
	flags.IntVar(&o.numaNodes, "cpu-numa-nodes", 8, "how many NUMA nodes")
	flags.IntVar(&o.cpusPerNUMANode, "cpus-per-numa-node", 4, "how many CPUs a NUMA node has")
	flags.VisitAll(func(each *flag.Flag) {
		variable := strings.ToUpper(strings.ReplaceAll(each.Name, "-", "_"))
		value := os.Getenv(variable)
		if value == "" || err != nil {
			return
		}
		if mistake := each.Value.Set(value); mistake != nil {
			err = fmt.Errorf("%s=%q: %w", variable, value, mistake)
		}
	})
	if err != nil {
		return o, err
	}
	_ = flags.Parse(args) // It exits.
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected arguments: %q", flags.Args())
	}
	if o.driverName == "" {
		o.driverName = o.profileName + ".example.com"
	}
	return o, nil
}
