package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	devices "github.com/nodekeeper/nodekeeper/sdk-go/gen/nodekeeper/devices/v1alpha2"
)

// numaNodes are NUMA nodes whose CPUs requests share. The scheduler subtracts them from the node's allocatable CPUs.
type numaNodes struct{ options }

// cpus is the name of their capacity, which claims request.
func (n numaNodes) cpus() string { return n.driverName + "/cpu" }

func (n numaNodes) pool(string) *devices.Pool {
	pool := &devices.Pool{}
	for number := range n.numaNodes {
		pool.Devices = append(pool.Devices, &devices.Device{
			Name:                     fmt.Sprintf("numa-%d", number),
			AllowMultipleAllocations: true,
			Attributes:               map[string]*devices.Attribute{"numaNodeID": {Int: new(int64(number))}},
			Capacity:                 map[string]*devices.Capacity{n.cpus(): {Value: strconv.Itoa(n.cpusPerNUMANode)}},
			NodeAllocatableResources: map[string]*devices.NodeAllocatableResource{
				"cpu": {Mapping: &devices.NodeAllocatableMapping{CapacityKey: n.cpus(), CapacityMultiplier: "1"}},
			},
		})
	}
	return pool
}

func (n numaNodes) variables(device *devices.AllocatedDevice) ([]string, error) {
	if len(device.Configuration) > 0 {
		return nil, errors.New("NUMA nodes have no configuration")
	}
	name := "CPU_DEVICE_" + strings.TrimPrefix(device.Device, "numa-")
	variables := []string{name + "=" + device.Device}
	if consumed, isShare := device.ConsumedCapacity[n.cpus()]; isShare {
		variables = append(variables, name+"_CONSUMED_CPU="+consumed)
	}
	return variables, nil
}
